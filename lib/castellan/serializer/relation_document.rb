# frozen_string_literal: true

module Castellan
  module Serializer
    # Writes the document of a relation or dataset from rows, with the resources of {Translation}.
    #
    #   options = DocumentOptions.new(UserSerializer, include: [:roles])
    #   document = RelationDocument.new(UserSerializer, User.active, options)
    #   document.refusal    # => nil, or why the document is written from records
    #   document.to_json
    class RelationDocument
      ADVICE = "write `from:` for a column, `preloads:` for associations that a block reads"
      # Replaces the request for {Plan.compile}; has the members in the order of the options.
      Shape = Struct.new(:include, :members, :format, :signature) do
        # @return [Shape] itself, in place of a request's fields
        def fields = self

        # @return [Array<Symbol>] the members to write for a type, attributes first
        def of(definition) = members.fetch(definition.resource.translation)

        # @return [Boolean] whether a relationship of the tree is included for this type
        def included?(_definition, _name) = true

        # @return [Boolean] as of {Plan::Request}
        def includes_nothing? = false
      end
      private_constant :ADVICE, :Shape

      # @return [String, nil] why the document is written from records
      attr_reader :refusal

      # @param relation [Object] an unloaded relation or dataset
      # @param options [DocumentOptions]
      def initialize(serializer, relation, options)
        @relation = relation
        @options = options
        @members = {}
        @shown = {}
        @translation = Translation.for(serializer, relation.respond_to?(:klass) ? relation.klass : relation.model)
        @refusal = catch(:refusal) { prepare }
      rescue DeclarationError, BadRequest => error # no resource can declare the serializer, or allows as many paths
        @refusal = error.message
      end

      # @return [String] the document's bytes
      def to_json(*)
        adapter = adapter_of(@plan.root)
        rows = adapter.fetch(@plan, adapter.scopes.from(@relation.dup), viewer: @options.params)
        escape = Serialize.escape
        layout = @plan.derive([:layout, escape]) { Layout.new(@plan, @tree, @shown, escape: escape) }
        tail = @options.around.map { |name, value| ",\"#{name}\":#{JsonText.of(value)}" }.join
        Serialize.encoder.encode(rows, layout, tail: tail).body
      end

      # @return [String] for each type, whether it is read from rows or from records, and why
      def explain
        return "#{@translation.serializer.record_type}: the whole document is written from records, because #{refusal}" if refusal

        @plan.nodes.flat_map { |node| explain_type(node, reasons(node)) }.join("\n")
      end

      private

      # @return [nil] throws the refusal, if there is one
      def prepare
        @tree = shape(@translation, @options.tree)
        signature = [@tree, *@members.values, *@shown.values].inspect
        @plan = Plan.compile(@translation.resource.definition, Shape.new(@tree, @members, :json_api, signature))
        root, *others = @plan.nodes.map(&:definition)
        [root, *others].uniq.each { |definition| Document::DeclarationCheck.of(definition) }
        if others.map(&:type).include?(root.type) # jsonapi-serializer includes primary records again
          refuse("the include reaches #{root.type} again, which only records show as they should be")
        end
        refuse("the conditions of the relation also select the associated records that it loads") if @plan.root.edges.any? && joins_loaded?
        check_records(@plan.nodes.select { |node| reasons(node).any? })
      end

      # @return [Hash{Symbol => Hash}] the declared part of the include, by key
      def shape(translation, tree)
        serializer = translation.serializer
        relationships = serializer.relationships_to_serialize || {}
        tree = tree.select { |name, _| relationships.key?(name) } # jsonapi-serializer ignores the others
        attributes, shown = [serializer.attributes_to_serialize, relationships].map do |members|
          @options.chosen(serializer.record_type, members).keys
        end
        written = shown.reject { |name| relationships[name].bare? && !tree.key?(name) }
        reason = translation.obstacle(attributes + (written | tree.keys))
        refuse("#{serializer.name} #{reason}") if reason

        keys = relationships.transform_values { |relationship| relationship.key.to_sym }
        @shown[translation] = keys.values_at(*shown)
        add_members(translation, attributes + keys.values_at(*written))
        tree.to_h { |name, below| [keys[name], shape(translation.related(name), below)] }
      end

      # A plan has only one list of members per type.
      def add_members(translation, names)
        type = translation.serializer.record_type
        same = @members.keys.find { |other| other.serializer.record_type == type }
        refuse("#{type} is written in two ways") unless (@members[translation] ||= names) == names && [nil, translation].include?(same)
      end

      # Refuses relations that would load records twice, and ids that are not the
      # primary key, by which records are found.
      def check_records(nodes)
        refuse("the relation preloads associations of its records") if nodes.any? && loads?
        other = nodes.find { |node| node.definition.id_column != adapter_of(node).primary_key } or return
        refuse("the id of #{other.definition.type}, #{other.definition.id_column}, may be that of several records")
      end

      def loads?
        return @relation.opts[:eager] || @relation.opts[:eager_graph] unless @relation.respond_to?(:preload_values)

        [@relation.preload_values, @relation.includes_values, @relation.eager_load_values].any?(&:any?)
      end

      # @return [Boolean] whether the relation loads associations in one statement with its own records
      def joins_loaded?
        @relation.respond_to?(:eager_loading?) ? @relation.eager_loading? : !@relation.opts[:eager_graph].nil?
      end

      def refuse(reason)
        throw(:refusal, reason)
      end

      def adapter_of(node) = Document::DeclarationCheck.of(node.definition)

      def reasons(node)
        @plan.derive([:model_reasons, node.path]) do
          Rows::ModelReasons.of(node, adapter_of(node)).map do |reason|
            key = reason[/\A(\S+): its block takes the record\z/, 1]
            method = node.definition.resource.translation.method_reason(key.to_sym) if key
            method ? "#{key}: #{method}" : reason
          end
        end
      end

      def explain_type(node, reasons)
        at = " (#{node.path})" unless node.path.empty?
        return ["#{node.definition.type}#{at}: loaded as records, in one statement; #{ADVICE}", *reasons.map { "  #{_1}" }] if reasons.any?

        columns = node.columns.map { |column| [*column.path, column.name].join(".") }
        "#{node.definition.type}#{at}: from rows (#{columns.join(", ")})"
      end
    end
  end
end
