# frozen_string_literal: true

module Castellan
  module Verify
    # Writes a document again, from its records and their lazily loaded associations.
    #
    #   loaded = LoadedRecords.new(rendering)
    #   loaded.output      # => a Serialize::Output
    #   loaded.unordered   # => [["users", "roles"]]: lists without an order
    #
    # Loads associations record by record, because lazy loading defines the
    # correct result. Loads each record once.
    class LoadedRecords
      # @return [Array<Array(String, String)>] types and members whose lists have no defined order
      attr_reader :unordered

      def initialize(document)
        @document = document
        @unordered = []
        @records = (document.collection? ? primary : primary.first(1)).each { |record| allow(record) }
        load(@records, document.plan.root)
      end

      # @return [Serialize::Output]
      def output
        plan = @document.plan
        row_set = @document.rows_of(plan, Rows.adapter_for(Rows.for(plan.root.definition.model), @records), Rows::Records.new(@records))
        Serialize.encoder.encode(row_set, Serialize.template(plan), single: !@document.collection?, tail: @document.tail(@records.size))
      end

      # @return [Boolean] whether the scope orders its records
      def ordered?
        scope = @document.paged
        return true unless Rows.scope?(scope)

        order = scope.respond_to?(:order_values) ? scope.order_values : scope.opts[:order]
        !order.nil? && !order.empty?
      end

      private

      def primary
        scope = @document.paged
        return scope.to_a if scope.is_a?(Rows::Records)

        scope = scope.relation if scope.is_a?(Rows::Ids::Chosen)
        scope.respond_to?(:klass) ? scope.klass.uncached { @document.records } : @document.records
      end

      def load(records, node)
        records = records.select { |record| active_record?(record) || sequel?(record) }
        node.members.each { |member| records.each { |record| walk(record, member.attribute.path) } }
        node.edges.each { |edge| load_related(records, node, edge) if edge.data && !edge.relationship.block }
      end

      def load_related(records, node, edge)
        relationship = edge.relationship
        return load_kinds(records, edge) if relationship.itself?

        place = [node.definition.type.to_s, relationship.key]
        @unordered << place unless records.all? { |record| ordered_list?(record, relationship) }
        found = records.flat_map { |record| related(record, relationship.association_name) }
        return load(once(found, edge.node), edge.node) if edge.node

        load_kinds(found, edge) if edge.alternatives
      end

      def load_kinds(records, edge)
        records.group_by { |record| Rows::RecordReader::Links.kind_of(edge.relationship, record) }.each do |kind, some|
          inner = kind && edge.alternatives[kind] and load(once(some, inner), inner)
        end
      end

      def once(records, node)
        records.zip(Rows::Ids.of(Rows.for(node.definition.model).instances, records, node.definition.id_column)).uniq(&:last).map(&:first)
      end

      def walk(record, path)
        path.reduce(record) { |owner, name| owner && related(owner, name).first }
      end

      # Both ORMs set the owner as the inverse, but the related record itself may load a different one.
      def related(record, name)
        fresh = active_record?(record) ? !record.association(name).loaded? : !record.associations.key?(name)
        found = active_record?(record) ? permitted(record.association(name)) { record.public_send(name) } : record.public_send(name)
        found = found.respond_to?(:to_ary) ? found.to_ary : [found].compact
        found.each { |one| forget(one) } if fresh
        found.each { |one| allow(one) }
      end

      # An association may forbid lazy loading of its own (`has_many :posts, strict_loading: true`).
      def permitted(association)
        return yield.tap { association.load_target } unless association.reflection.options[:strict_loading]

        association.send(:skip_strict_loading) { yield.tap { association.load_target } } # an overridden reader may not load it
      end

      # Models may forbid lazy loading (`strict_loading`, the plugin forbid_lazy_load).
      def allow(record)
        return if record.frozen?

        record.strict_loading!(false) if active_record?(record) && record.strict_loading?
        record.allow_lazy_load if sequel?(record) && record.respond_to?(:allow_lazy_load)
      end

      def forget(record)
        return (record.associations.clear unless record.frozen?) if sequel?(record)
        return unless active_record?(record)

        names = record.class.reflect_on_all_associations(:has_one).map(&:name)
        names.each { |name| record.association(name).reset if record.association_cached?(name) }
      end

      def ordered_list?(record, relationship)
        return true unless relationship.to_many?
        return record.association(relationship.association_name).scope.order_values.any? if active_record?(record)

        !record.public_send(:"#{relationship.association_name}_dataset").opts[:order].nil?
      end

      def active_record?(record)
        defined?(::ActiveRecord::Base) && record.is_a?(::ActiveRecord::Base)
      end

      def sequel?(record)
        defined?(::Sequel::Model) && record.is_a?(::Sequel::Model)
      end
    end
  end
end
