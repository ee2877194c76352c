# frozen_string_literal: true

require "delegate"

module Castellan
  module Profile
    # The body of a profiled response: what it asks the database while it is sent belongs to its request, and its bytes are counted.
    #
    #   Body.new(body, exchange)   # answers each, call, to_ary and to_path as far as the body does
    #
    # Says nothing else and changes nothing: a chunk is handed on as it is, before it is looked at.
    class Body < SimpleDelegator
      ASKED = %i[each call to_ary to_path].freeze
      private_constant :ASKED

      # @param body [Object] of Rack
      # @param exchange [Exchange]
      def initialize(body, exchange)
        super(body)
        @exchange = exchange
      end

      # These are there only as far as the body has them.
      def respond_to?(name, *)
        ASKED.include?(name) ? __getobj__.respond_to?(name) : super
      end

      # What the server does with a chunk is none of the request; it may also leave the body half way, as an Enumerator does.
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

      # All at once; it may be the last that is heard of the body (Rack: "must call close").
      def to_ary
        chunks = @exchange.record { __getobj__.to_ary }
        chunks.each { |chunk| @exchange.sent(chunk) }
        @exchange.sent_all
        chunks
      end

      def call(stream)
        @exchange.record { __getobj__.call(stream) }
      ensure
        @exchange.streamed
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
        @exchange.refused(error)
        raise
      end
    end
  end
end
