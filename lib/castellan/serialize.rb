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
require_relative "serialize/included_walk"
require_relative "serialize/node_rows"
require_relative "serialize/ruby_encoder"

module Castellan
  # Encodes a plan's rows as a JSON:API document or as nested JSON, without a Hash, model or String per value.
  #
  #   template = Castellan::Serialize::Template.new(plan)                       # once per plan
  #   output = Castellan::Serialize.encoder.encode(row_set, template)           # once per request
  #   output.body                                                               # => '{"data":[{"type":"users","id":"1",…}]}'
  #
  # Two encoders write the same bytes: {NativeEncoder} (the C extension) and {RubyEncoder}, which is used
  # without the extension or with `CASTELLAN_ENCODER=ruby`, and as the oracle in tests. Neither queries a
  # database.
  module Serialize
    # @return [Boolean] whether the C extension is loaded
    def self.native?
      const_defined?(:NativeEncoder, false)
    end

    # How to escape text: like Rails, with its setting for HTML, if ActiveSupport's JSON is loaded; else like
    # the json gem.
    # @return [Symbol] :json, :rails or :rails_html
    def self.escape
      return :json unless defined?(ActiveSupport::JSON::Encoding)

      ActiveSupport::JSON::Encoding.escape_html_entities_in_json ? :rails_html : :rails
    end

    # @return [#encode, #encode_each] {NativeEncoder}; {RubyEncoder} if that is not built or
    #   `CASTELLAN_ENCODER=ruby` is set
    def self.encoder
      const_defined?(:NativeEncoder, false) && ENV["CASTELLAN_ENCODER"] != "ruby" ? NativeEncoder : RubyEncoder
    end
  end
end

begin
  require "castellan/castellan_ext"
rescue LoadError
  nil # not compiled; RubyEncoder is used
end
require_relative "serialize/native_encoder" if defined?(Castellan::Native)
