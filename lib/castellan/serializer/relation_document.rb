# frozen_string_literal: true

require_relative "translation"
require_relative "layout"

module Castellan
  module Serializer
    # The document of a relation or dataset, read as rows by the resources of {Translation}.
    #
    #   document = RelationDocument.new(UserSerializer, User.active, Options.new(UserSerializer, include: [:roles]))
    #   document.refusal    # => nil, or why the document is written from records
    #   document.to_json
    class RelationDocument
      ADVICE = "write `from:` for a column, `preloads:` for associations that a block reads"
      # What a plan is compiled of, with members in the order of the options.
      Shape = Struct.new(:include, :members, :format, :signature) do
        # @return [Shape] as the fields of a request
        def fields = self

        # @return [Array<Symbol>] the members of a type that are written, attributes first
        def of(definition) = members.fetch(definition.resource.translation)
      end
      private_constant :ADVICE, :Shape

      # @return [String, nil] why the document is written from records
      attr_reader :refusal

      # @param relation [Object] a relation or dataset that was not read
      # @param options [Options]
      def initialize(serializer, relation, options)
        @relation = relation
        @options = options
        @members = {}
        @shown = {}
        @translation = Translation.for(serializer, relation.respond_to?(:klass) ? relation.klass : relation.model)
        @refusal = catch(:refusal) { prepare }
      rescue DeclarationError, BadRequest => error # more paths or levels than a resource takes
        @refusal = error.message
      end

      # @return [String] the document's bytes
      def to_json(*)
        rows = adapter.fetch(@plan, adapter.scope(@relation.dup), viewer: @options.params) # the caller's own stays unread
        Serialize.encoder.encode(rows, layout, tail: tail).body
      end

      # @return [String] for each type whether it is read from rows or from records, and why
      def explain
        return "#{@translation.serializer.record_type}: the whole document is written from records, because #{refusal}" if refusal

        @plan.nodes.flat_map { |node| explain_type(node, reasons(node)) }.join("\n")
      end

      private

      # @return [nil] or throws the refusal
      def prepare
        @tree = shape(@translation, @options.tree)
        signature = [@tree, *@members.values, *@shown.values].inspect
        @plan = Plan.compile(@translation.resource.definition, Shape.new(@tree, @members, :json_api, signature))
        @plan.nodes.map(&:definition).uniq.each { |one| Document::DeclarationCheck.of(one) }
        check_types
        check_records
      end

      # @return [Hash{Symbol => Hash}] the part of the include that exists, by key
      def shape(translation, tree)
        relationships = translation.serializer.relationships_to_serialize || {}
        tree = tree.select { |name, _| relationships.key?(name) } # jsonapi-serializer passes over the others
        attributes = chosen(translation, translation.serializer.attributes_to_serialize)
        shown = chosen(translation, relationships)
        written = shown.reject { |name| relationships[name].bare? && !tree.key?(name) }
        reason = translation.obstacle(attributes + (written | tree.keys))
        throw(:refusal, "#{translation.serializer.name} #{reason}") if reason

        @shown[translation] = shown.map { |name| relationships[name].key.to_sym }
        add_members(translation, attributes + written.map { |name| relationships[name].key.to_sym })
        tree.to_h { |name, below| [relationships[name].key.to_sym, shape(translation.related(name), below)] }
      end

      # @return [Array<Symbol>] the names that are written, in the order of the fields
      def chosen(translation, members)
        fieldset = @options.fieldset(translation.serializer.record_type)
        (fieldset ? (members || {}).slice(*fieldset) : members || {}).keys
      end

      # A plan has one list of members for a type, and finds included records by it.
      def add_members(translation, names)
        same = @members.keys.find { |other| other.serializer.record_type == translation.serializer.record_type }
        return if (@members[translation] ||= names) == names && (same.nil? || same.equal?(translation))

        throw(:refusal, "#{translation.serializer.record_type} is written in two ways")
      end

      # jsonapi-serializer writes a record that is included again, also when it is one of the primary data.
      def check_types
        type = @plan.root.definition.type
        throw(:refusal, "the include leads to #{type} again, which only records show as they should be") if
          @plan.nodes.drop(1).any? { |node| node.definition.type == type }
      end

      # What a relation loads by itself it loads with its records; and a record is found by its primary key.
      def check_records
        by_records = @plan.nodes.select { |node| reasons(node).any? }
        throw(:refusal, "the relation loads what its records lead to") if by_records.any? && loads?
        other = by_records.find { |node| node.definition.id_column != adapter_of(node).primary_key } or return
        throw(:refusal, "the id of #{other.definition.type}, #{other.definition.id_column}, may be that of several records")
      end

      def loads?
        return @relation.opts[:eager] || @relation.opts[:eager_graph] unless @relation.respond_to?(:preload_values)

        [@relation.preload_values, @relation.includes_values, @relation.eager_load_values].any?(&:any?)
      end

      def adapter
        adapter_of(@plan.root)
      end

      def adapter_of(node)
        Document::DeclarationCheck.of(node.definition)
      end

      # @return [Array<String>] why the records of a node are loaded
      def reasons(node)
        @plan.derive([:model_reasons, node.path]) do
          translation = node.definition.resource.translation
          Rows::ModelReasons.of(node, adapter_of(node)).map do |reason|
            key = reason[/\A(\S+): its block takes the record\z/, 1]
            method = translation.method_reason(key.to_sym) if key
            method ? "#{key}: #{method}" : reason
          end
        end
      end

      def layout
        escape = Serialize.escape
        @plan.derive([:layout, escape]) { Layout.new(@plan, @tree, @shown, escape: escape) }
      end

      def explain_type(node, reasons)
        at = " (#{node.path})" unless node.path.empty?
        return "#{node.definition.type}#{at}: from rows (#{columns(node)})" if reasons.empty?

        ["#{node.definition.type}#{at}: loaded as records, in one statement; #{ADVICE}", *reasons.map { |reason| "  #{reason}" }]
      end

      def columns(node)
        node.columns.map { |column| [*column.path, column.name].join(".") }.join(", ")
      end

      def tail
        around = { meta: @options.meta, links: @options.links }.reject { |_, value| Serializer.blank?(value) }
        around.map { |name, value| ",\"#{name}\":#{JsonText.of(value)}" }.join
      end
    end
  end
end
