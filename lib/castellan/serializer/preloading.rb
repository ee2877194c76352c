# frozen_string_literal: true

module Castellan
  module Serializer
    # Loads what a document reads of its records, each association for all records of a class at once: the `preloads:` of blocks, the
    # associations of relationships, and the included records with theirs.
    #
    #   Preloading.new(options).call(UserSerializer, users)   # => users
    #
    # What a record has loaded, built or changed stays as it is. An association that would find other records when it is loaded for
    # several owners (LIMIT, a scope that takes the owner) is left to its record.
    class Preloading
      # @param given [Symbol, Array, Hash, nil] as ActiveRecord's `preload` takes them
      # @return [Hash{Symbol => Hash}]
      def self.tree(given)
        [given].flatten.compact.each_with_object({}) do |name, tree|
          pairs = name.is_a?(Hash) ? name : { name => nil }
          pairs.each { |association, below| (tree[association.to_sym] ||= {}).update(tree(below)) }
        end
      end

      # @param options [Options]
      def initialize(options)
        @options = options
      end

      # @param records [Array<Object>] of any classes
      # @param tree [Hash{Symbol => Hash}] the relationships whose records are included
      # @return [Array<Object>] the same
      def call(serializer, records, tree = @options.tree)
        each_model(records) do |adapter, some|
          walk(adapter, some, associations(serializer, adapter, tree.keys))
          tree.each { |name, below| included(serializer.relationships_to_serialize&.[](name), adapter, some, below) }
        end
        records
      end

      private

      # @yieldparam adapter [Object] the rows adapter of the records' class
      # @yieldparam some [Array<Object>] the records of that class
      def each_model(records)
        records.group_by(&:class).each do |model, some| # not instance_of?, which a decorator delegates
          yield Rows.for(model), some if model?(model)
        end
      rescue DeclarationError
        nil # a model without a table
      end

      def model?(model)
        (defined?(::ActiveRecord::Base) && model < ::ActiveRecord::Base) || (defined?(::Sequel::Model) && model < ::Sequel::Model)
      end

      # Loads a tree of associations.
      def walk(adapter, records, tree)
        names = tree.keys.select { |name| adapter.associations.include?(name) }
        at_once, others = names.partition { |name| adapter.instances.loads_at_once?(name) }
        at_once.group_by { |name| unread(records, name) }.each { |some, together| adapter.instances.preload(some, together) if some.any? }
        others.each { |name| adapter.instances.preload_where_same(unread(records, name), name) }
        names.each do |name|
          next if tree[name].empty?

          each_model(related(adapter, records, name)) { |inner, some| walk(inner, some, tree[name]) }
        end
      end

      def included(relationship, adapter, records, tree)
        name = relationship&.object_method_name&.to_sym or return
        return if relationship.object_block || !adapter.associations.include?(name)

        kinds = related(adapter, records, name).group_by { |record| relationship.serializer_for(record, @options.params) }
        kinds.each { |serializer, some| call(serializer, some, tree) }
      rescue NameError
        nil # no serializer: the error is raised where the record is written
      end

      def related(adapter, records, name)
        there = records.select { |record| adapter.instances.loaded?(record, name) }
        there.flat_map { |record| adapter.instances.related(record, name) }.uniq(&:object_id)
      end

      def unread(records, name)
        records.select { |record| record.respond_to?(:association) ? plain?(record, name) : plain_sequel?(record, name) }
      end

      # An association through another that is loaded would take its records' order from that one.
      def plain?(record, name)
        association = record.association(name)
        through = association.reflection.options[:through]
        record.persisted? && !record.has_changes_to_save? && !association.loaded? && association.target.blank? &&
          !(through && record.association(through).loaded?)
      end

      def plain_sequel?(record, name)
        !record.new? && record.changed_columns.empty? && !record.associations.key?(name)
      end

      # @return [Hash{Symbol => Hash}] what writing records of this serializer reads of them
      def associations(serializer, adapter, included)
        fieldset = @options.fieldset(serializer.record_type)
        attributes, relationships = [serializer.attributes_to_serialize, serializer.relationships_to_serialize].map do |members|
          fieldset ? (members || {}).slice(*fieldset, *included).values : (members || {}).values
        end
        code = attributes.any? { |attribute| reads_record?(attribute, adapter) } || reads_records?(serializer)
        read = relationships.select { |one| included.include?(one.name) || (code ? !one.bare? : links_by_records?(one, adapter)) }
        Preloading.tree((attributes + relationships).map(&:preloads) + read.reject(&:object_block).map(&:object_method_name))
      end

      # Code of the application may walk any association of its record.
      def reads_record?(attribute, adapter)
        attribute.from || attribute.column.nil? || !adapter.columns.include?(attribute.column.to_sym)
      end

      def reads_records?(serializer)
        serializer.record_id.is_a?(Proc) || [serializer.data_links, serializer.meta_to_serialize].any? { |code| !Serializer.blank?(code) }
      end

      # Whether the related records are read where they are not included: their ids are no column of the owner.
      def links_by_records?(relationship, adapter)
        return !relationship.bare? if relationship.linked_by_record? || relationship.static_record_type.nil?

        !relationship.bare? && !adapter.columns.include?(relationship.id_method_name.to_sym)
      rescue NameError # no serializer: the error is raised where the record is written
        false
      end
    end
  end
end
