# frozen_string_literal: true

module Castellan
  module Serializer
    # Whether records that were given tell what their rows would: only then may rows be asked for the rest.
    #
    #   StoredRecords.all?([ada, alan])                              # => true: saved, and of one model
    #   StoredRecords.linked?([ada], arrangement, translation, {})   # => false where a role was built for her and not saved
    #
    # There may be thousands: what their model tells is asked of the model, once.
    module StoredRecords
      class << self
        # @param records [Array<Object>]
        # @return [Boolean]
        def all?(records)
          models = records.map(&:class).uniq # not instance_of?, which a decorator answers for what is in it
          models.size == 1 && stored?(records, models.first)
        end

        # @param records [Array<Object>] of the translation's model
        # @param arrangement [Arrangement] knows which relationships are written
        # @param tree [Hash{Symbol => Hash}] what is included
        # @return [Boolean] whether what the records hold in their associations is what is stored
        def linked?(records, arrangement, translation, tree)
          (arrangement.linked(translation).map(&:name) | tree.keys).all? do |name|
            next false unless starts_as_stored?(records, translation, name)

            association = translation.association(name)
            found = held(records, translation.model, name)
            next true if found.none?

            records.zip(found).all? { |record, some| some.nil? || association.linked?(record, some) } &&
              related?(found.compact, arrangement, association.target, tree[name])
          end
        end

        private

        def related?(found, arrangement, translation, tree)
          related = Set.new.compare_by_identity.merge(found.flat_map(&:itself)).to_a # many records may lead to one
          related.group_by(&:class).all? { |model, some| model <= translation.model && stored?(some, model) } &&
            (related.empty? || !tree || linked?(related, arrangement, translation, tree))
        end

        def active_record?(model)
          defined?(::ActiveRecord::Base) && model < ::ActiveRecord::Base
        end

        def sequel?(model)
          defined?(::Sequel::Model) && model < ::Sequel::Model
        end

        # A record with methods of its own (extended by a module, as presenters do) answers what no row knows.
        def stored?(records, model)
          if active_record?(model) then records.all? { |record| record.persisted? && record.singleton_methods.empty? }
          elsif sequel?(model) then records.all? { |record| !record.new? && record.singleton_methods.empty? }
          else false
          end
        end

        # Rows are found by the ids that the records tell, and lead on from what is stored in the column that the association starts
        # from; a record leads on from what it has there. A belongs_to is not asked of rows: {RelationshipTranslation#linked?}.
        def starts_as_stored?(records, translation, name)
          association = translation.adapter.association(name)
          return true if association.macro == :belongs_to || association.owner_key == translation.id_column

          columns = [translation.id_column, association.owner_key].flatten
          records.none? { |record| columns.any? { |column| changed?(record, translation, column) } }
        end

        def changed?(record, translation, column)
          return record.changed_columns.include?(column) unless active_record?(translation.model)

          record.will_save_change_to_attribute?(translation.adapter.column_name(column))
        end

        # @return [Array<Array, nil>] of each record, nil where nothing is loaded, built or put in place
        def held(records, model, name)
          return records.map { |record| list(record.associations[name]) if record.associations.key?(name) } unless active_record?(model)

          records.map do |record|
            association = record.association(name)
            list(association.target) if association.loaded? || association.target.present?
          end
        end

        # Not [*found], which asks a record whether it is a list.
        def list(found)
          found.is_a?(Array) ? found : [found].compact
        end
      end
    end
  end
end
