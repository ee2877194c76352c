# frozen_string_literal: true

require_relative "relation_document"

module Castellan
  module Serializer
    # Explains how a serializer will write what it was given: which types come from rows, which from records, and why.
    #
    #   puts UserSerializer.new(User.active, include: [:roles]).explain
    #   # user: loaded as records, in one statement
    #   #   full_name: its block takes the record
    #   # role (roles): from rows (id, title)
    class Explanation
      ADVICE = "write `from:` for a column, `preloads:` for associations that a block reads"
      private_constant :ADVICE

      # @param source [Source, nil]
      def initialize(serializer, source, options)
        @serializer = serializer
        @source = source
        @options = options
      end

      # @return [String]
      def to_s
        return "#{@serializer.record_type}: the records that were given, each asked for what is written" unless @source

        document = RelationDocument.new(@serializer, @source, @options)
        return whole(document.refusal) unless document.rows?

        document.parts.flat_map { |node, translation| type(node, translation) }.join("\n")
      end

      private

      def whole(refusal)
        "#{@serializer.record_type}: the whole document is written from records, because #{refusal}"
      end

      def type(node, translation)
        name = translation.serializer.record_type
        at = " (#{node.path})" unless node.path.empty?
        reasons = translation.reasons.slice(*node.members.map { |member| member.attribute.name })
        return ["#{name}#{at}: from rows (#{columns(node)})"] if reasons.empty?

        ["#{name}#{at}: loaded as records, in one statement; #{ADVICE}", *reasons.map { |member, reason| "  #{member}: #{reason}" }]
      end

      def columns(node)
        node.columns.map { |column| [*column.path, column.name].join(".") }.join(", ")
      end
    end
  end
end
