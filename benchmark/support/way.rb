# frozen_string_literal: true

module Benchmarks
  # Describes one way to do a piece of work.
  #
  #   Way.new("jsonapi-serializer", :json_api) { Serializer.new(users.to_a).serializable_hash.to_json }
  #   Way.new("Panko, records loaded", :nested, prepare: -> { users.to_a }) { |records| … }   # times only the block
  #
  # Ways with the same `document` must return equal documents; nil if it returns no document.
  class Way
    # @return [String]
    # @return [Symbol, nil] :json_api, :nested or nil
    attr_reader :name, :document

    def initialize(name, document, prepare: nil, &work)
      @name = name
      @document = document
      @prepare = prepare
      @work = work
      freeze
    end

    # @return [Boolean] whether each call needs a preparation, which is not timed
    def prepared?
      !@prepare.nil?
    end

    # @return [Object] the argument of a call
    def prepare
      @prepare&.call
    end

    # @return [String] the document
    def call(given = prepare)
      @prepare ? @work.call(given) : @work.call
    end
  end
end
