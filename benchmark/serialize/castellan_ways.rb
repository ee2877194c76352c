# frozen_string_literal: true

require "castellan"
require_relative "raw_statements"
require_relative "../support/way"

module Benchmarks
  # The ways of Castellan: the C encoder, the Ruby encoder, and only the SELECTs.
  module CastellanWays
    RUBY = { "CASTELLAN_ENCODER" => "ruby" }.freeze

    # @yieldreturn [String] the document
    # @return [Array<Way>]
    def castellan(document, &render)
      [Way.new("Castellan", document, &render), Way.new("Castellan, Ruby encoder", document) { in_ruby(&render) }]
    end

    # @yieldreturn [String] the document
    # @return [Way]
    def limit(&render)
      raw = RawStatements.of(&render)
      Way.new("the SELECTs alone, raw and prepared (the limit)", nil) { raw.call }
    end

    # @param document [Proc] makes the document whose rows are fetched outside the time
    # @param suffix [String] of the names
    # @return [Array<Way>]
    def encoders(document, kind, suffix: "")
      asked = document.call.rendering
      template = Castellan::Serialize::Template.new(asked.plan, escape: Castellan::Serialize.escape)
      fetch = -> { Castellan::Rows.for(asked.definition.model).fetch(asked.plan, asked.paged) }
      { "Castellan" => Castellan::Serialize.encoder, "Castellan, Ruby encoder" => Castellan::Serialize::RubyEncoder }.map do |name, encoder|
        Way.new(name + suffix, kind, prepare: fetch) { |rows| encoder.encode(rows, template).body }
      end
    end

    private

    def in_ruby
      ENV.update(RUBY)
      yield
    ensure
      ENV.delete("CASTELLAN_ENCODER")
    end
  end
end
