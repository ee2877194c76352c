# frozen_string_literal: true

require_relative "relation_document"
require_relative "walked_associations"

module Castellan
  module Serializer
    # Says in words how a serializer will write what it was given: which types come from rows, which from records, and why.
    #
    #   puts UserSerializer.new(User.active, include: [:roles]).explain
    #   # user: loaded as records, in one statement
    #   #   employee_id: its block takes the record; it walks employee: write attribute :employee_id, from: "employee.id"
    #   # role: from rows (id, title)
    #
    # To see what blocks walk, a few records are loaded and the blocks are called with them: this reads the database.
    class Explanation
      # How many records of a type the blocks are tried with.
      SAMPLE = 20

      # @param source [Source, nil]
      def initialize(serializer, source, options)
        @serializer = serializer
        @source = source
        @options = options
      end

      # @return [String]
      def to_s
        document = RelationDocument.new(@serializer, @source, @options) if @source
        return given unless document && (document.rows? || !@source.records?)
        return whole(document.refusal) unless document.rows?

        document.parts.flat_map { |node, translation| type(node, translation) }.join("\n")
      end

      private

      def given
        "#{@serializer.record_type}: the records that were given, each asked for what is written"
      end

      def whole(refusal)
        translation = Translation.of(@serializer, @source.model)
        ["#{@serializer.record_type}: the whole document is written from records, because #{refusal}", *members(translation)].join("\n")
      rescue DeclarationError
        "#{@serializer.record_type}: the whole document is written from records, because #{refusal}"
      end

      def type(node, translation)
        name = translation.serializer.record_type
        at = " (#{node.path})" unless node.path.empty?
        return [given, *members(translation)] if node.path.empty? && @source.records?
        return ["#{name}#{at}: from rows (#{columns(node)})"] unless translation.opaque?

        ["#{name}#{at}: loaded as records, in one statement", *members(translation)]
      end

      def columns(node)
        node.columns.map { |column| [*column.path, column.name].join(".") }.join(", ")
      end

      def members(translation)
        sample = sample(translation)
        translation.reasons.map { |name, reason| "  #{name}: #{reason}#{advice(translation, name, sample)}" }
      end

      # Fresh records for each block, because one that has walked an association has it loaded.
      def sample(translation)
        return -> { [] } if translation.serializer != @serializer && !translation.model.respond_to?(:limit)

        scope = translation.serializer == @serializer && !@source.records? ? @source.scope : translation.adapter.scope
        -> { scope.limit(SAMPLE).to_a }
      end

      def advice(translation, name, sample)
        attribute = translation.serializer.attributes_to_serialize&.[](name)
        return unless attribute&.method.is_a?(Proc) && attribute.from.nil? && !attribute.as_stored

        walked = WalkedAssociations.new(attribute.method, sample.call, @options.params)
        return if walked.names.empty?

        "; it walks #{walked.names.join(", ")}: #{instead(name, attribute, walked)}"
      end

      def instead(name, attribute, walked)
        return "preloaded, as declared" if attribute.preloads.any?
        return "write attribute :#{name}, from: \"#{walked.from}\"" if walked.from

        "declare what it walks, attribute(:#{name}, preloads: #{preloads(walked.names)}) { … }"
      end

      def preloads(names)
        names.size == 1 ? names.first.inspect : names.inspect
      end
    end
  end
end
