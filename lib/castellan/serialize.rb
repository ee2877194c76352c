# frozen_string_literal: true

require_relative "errors"
require_relative "plan"
require_relative "serialize/unwritable"
require_relative "serialize/second_look"
require_relative "serialize/text"
require_relative "serialize/timestamp"
require_relative "serialize/decimal"
require_relative "serialize/values"
require_relative "serialize/output"
require_relative "serialize/assembly"
require_relative "serialize/template"
require_relative "serialize/node_rows"
require_relative "serialize/ruby_encoder"

module Castellan
  # From rows to bytes: writes what a plan's rows say as a JSON:API document or as nested JSON, without a hash, a model or a
  # string for each value in between.
  #
  #   template = Castellan::Serialize::Template.new(plan)                       # once a plan
  #   output = Castellan::Serialize.encoder.encode(row_set, template)           # once a request
  #   output.body                                                               # => '{"data":[{"type":"users","id":"1",…}]}'
  #
  # Two encoders give the same bytes: {NativeEncoder} (the C extension) and {RubyEncoder}, its oracle, used where the extension
  # is not built or where `CASTELLAN_ENCODER=ruby` is set. Neither reads a database; what is not in the rows is not written.
  module Serialize
    # @return [Boolean] whether the C extension is loaded
    def self.native?
      const_defined?(:NativeEncoder, false)
    end

    # How text is escaped: as Rails does where Rails' JSON is loaded, with its setting for HTML; as the json gem does otherwise.
    # @return [Symbol] :json, :rails or :rails_html
    def self.escape
      return :json unless defined?(ActiveSupport::JSON::Encoding)

      ActiveSupport::JSON::Encoding.escape_html_entities_in_json ? :rails_html : :rails
    end

    # @return [#encode, #encode_each] {NativeEncoder}, or {RubyEncoder} where that is not built or not wanted
    def self.encoder
      const_defined?(:NativeEncoder, false) && ENV["CASTELLAN_ENCODER"] != "ruby" ? NativeEncoder : RubyEncoder
    end
  end
end

begin
  require "castellan/castellan_ext"
rescue LoadError
  nil # not compiled here: the Ruby encoder does the same work
end
require_relative "serialize/native_encoder" if defined?(Castellan::Native)
