# frozen_string_literal: true

require_relative "../instrument"

module Castellan
  module Serializer
    # Which associations a block walks, seen by calling it with records, and what to write so that it need not.
    #
    #   walked = WalkedAssociations.new(->(user) { user.employee&.number }, users, {})
    #   walked.names       # => [:employee]
    #   walked.from        # => "employee.number", where the block answers just that column
    #
    # The records have to be freshly loaded: what is loaded already is not walked.
    class WalkedAssociations
      # Hears of each walk through an association; is told of statements, and does not care.
      class Witness
        attr_reader :walks

        def initialize
          @walks = []
        end

        def query(*) = nil
        def enter(model, association) = (@walks << [model, association] if association)
        def leave = nil
      end
      private_constant :Witness

      # @param params [Hash] as the block gets them
      def initialize(block, records, params)
        @block = block
        @params = params
        @answers = records.map { |record| [record, *watch(record)] }
      end

      # @return [Array<Symbol>] of the record itself and of what it leads to, each once
      def names
        @names ||= @answers.flat_map { |_, _, walks| walks.map(&:last) }.uniq
      end

      # @return [String, nil] what to write as `from:`
      def from
        telling = @answers.reject { |_, value, walks| value.nil? || walks.empty? }
        return if telling.empty?

        columns = telling.map { |record, value, _| columns_with(target(record), value) }.reduce(:&)
        [*names, columns.first].join(".") if columns.any?
      end

      private

      def watch(record)
        witness = Witness.new
        [Instrument.record(witness) { Serializer.call_proc(@block, record, @params) }, witness.walks]
      rescue StandardError
        [nil, witness.walks] # what a block cannot do with some record is not of interest here
      end

      # The record at the end of the path, if the names are a path of to-one associations.
      def target(record)
        names.reduce(record) { |object, name| object.public_send(name) if object.respond_to?(name) }
      end

      def columns_with(record, value)
        columns = if record.respond_to?(:attributes) then record.attributes
                  elsif record.respond_to?(:values) && !record.is_a?(Enumerable) then record.values
                  else {}
                  end
        columns.select { |_, column| column == value }.keys.map(&:to_s)
      end
    end
  end
end
