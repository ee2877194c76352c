# frozen_string_literal: true

require_relative "config"
require_relative "errors"
require_relative "plan"
require_relative "serialize/unwritable"
require_relative "serialize/text"
require_relative "serialize/timestamp"
require_relative "serialize/decimal"
require_relative "serialize/values"
require_relative "serialize/output"
require_relative "serialize/blanks"
require_relative "serialize/template"
require_relative "serialize/included_walk"
require_relative "serialize/node_rows"
require_relative "serialize/ruby_encoder"

module Castellan
  # Encodes a plan's rows as a JSON:API document or nested JSON, without an object per value.
  #
  #   template = Castellan::Serialize::Template.new(plan)               # once per plan
  #   output = Castellan::Serialize.encoder.encode(row_set, template)   # once per request
  #   output.body                                                       # => '{"data":[{"type":"users",…}]}'
  #
  # Two encoders write the same bytes: {NativeEncoder} (the C extension) and
  # {RubyEncoder}, which is used without the extension, with `CASTELLAN_ENCODER=ruby`, and
  # as the oracle in tests. Neither queries a database.
  module Serialize
    TEMPLATES = { json: :json_template, rails: :rails_template, rails_html: :rails_html_template }.freeze
    private_constant :TEMPLATES

    # @param plan [Plan::FetchPlan]
    # @return [Template] cached per plan and {.escape}
    def self.template(plan)
      escape = self.escape
      plan.derive(TEMPLATES.fetch(escape)) { Template.new(plan, escape: escape) }
    end

    # @return [Boolean] whether the C extension is loaded
    def self.native?
      const_defined?(:NativeEncoder, false)
    end

    # Chooses how strings are escaped: like Rails and its setting for HTML, if ActiveSupport's JSON
    # is loaded; otherwise like the json gem.
    # @return [Symbol] :json, :rails or :rails_html
    def self.escape
      encoding = @encoding ||= (ActiveSupport::JSON::Encoding if Castellan.active_support_json?) or return :json

      encoding.escape_html_entities_in_json ? :rails_html : :rails
    end

    # Encodes the row set; if a coder rejects a value (NaN, an infinite date, a year BC, text in
    # a numeric column of SQLite), encodes it again with that member cast by the ORM's type.
    # Costs nothing if all values are plain.
    # @param row_set [Plan::RowSet]
    # @yieldparam tables [Array<Plan::RowSet::Table>] the row set's tables,
    #   or copies with that member computed
    # @return [Object] the result of the block
    # @raise [EncodingError] if the ORM's type cannot convert the value either
    def self.retyping(row_set)
      tables = row_set.tables
      begin
        yield tables
      rescue EncodingError => error
        tables = retyped(tables, *error.place) or raise
        retry
      end
    end

    def self.retyped(tables, node = nil, member = nil)
      table = node && tables[node]
      return if table.nil? || table.retype.nil? || table.computed&.key?(member)

      texts = table.retype.call(member) or return
      tables.dup.tap { |all| all[node] = table.dup.tap { |one| one.computed = { **(table.computed || {}), member => texts } } }
    end
    private_class_method :retyped

    # @return [#encode, #encode_each] {NativeEncoder}; {RubyEncoder} without the
    #   extension or with `CASTELLAN_ENCODER=ruby`
    def self.encoder
      const_defined?(:NativeEncoder, false) && ENV["CASTELLAN_ENCODER"] != "ruby" ? NativeEncoder : RubyEncoder
    end
  end
end

begin
  require "castellan/castellan_ext"
rescue LoadError
  nil # not compiled; encoder returns RubyEncoder
end
require_relative "serialize/native_encoder" if defined?(Castellan::Native)
