# frozen_string_literal: true

require "delegate"

module Castellan
  module Profile
    # Wraps the body of a profiled response: records the work of producing it and counts its bytes.
    #
    #   BodyProxy.new(body, exchange)   # responds to each, call, to_path and, unless it is lazy, to_ary if the body does
    #
    # Yields the chunks unchanged.
    class BodyProxy < SimpleDelegator
      ASKED = %i[each call to_ary to_path].freeze
      private_constant :ASKED

      # @param body [Object] Rack body
      # @param exchange [Exchange]
      def initialize(body, exchange)
        super(body)
        @exchange = exchange
      end

      def respond_to?(name, *)
        return super unless ASKED.include?(name)

        __getobj__.respond_to?(name) && !(name == :to_ary && @exchange.lazy?)
      end

      # The server's work with a chunk is not part of the request. The server may also stop iterating
      # half-way.
      def each
        return enum_for(:each) unless block_given?

        around = Recording.current
        @exchange.record do
          __getobj__.each do |chunk|
            @exchange.sent(chunk)
            handed_on(around) { yield chunk }
          end
        end
      end

      # to_ary returns all chunks at once. Rack requires it to close the body, so `close` may not be called
      # later.
      def to_ary
        chunks = @exchange.record { __getobj__.to_ary }
        chunks.each { |chunk| @exchange.sent(chunk) }
        @exchange.sent_all
        chunks
      end

      def call(stream)
        @exchange.record { __getobj__.call(stream) }
      ensure
        @exchange.finish(bytes: nil, note: "the body wrote to a stream: its size is not known")
      end

      def close
        @exchange.record { __getobj__.close if __getobj__.respond_to?(:close) }
      ensure
        @exchange.finish
      end

      private

      def handed_on(around, &block)
        Recording.resume(around, &block)
      rescue StandardError => error
        @exchange.server_failed(error)
        raise
      end
    end
  end
end
