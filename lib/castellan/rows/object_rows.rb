# frozen_string_literal: true

module Castellan
  module Rows
    # Reads plain objects, as the adapter of resources without a model.
    #
    #   rows = ObjectRows.new
    #   rows.fetch(plan, Records.new([{ id: 1, title: "Keep" }]))   # => RowSet
    #
    # Declarations of such resources are not checked at boot, because the objects do not exist yet.
    class ObjectRows
      # @return [ObjectRows::Instances]
      attr_reader :instances

      def initialize
        @instances = ObjectRows::Instances.new
        freeze
      end

      # @return [nil]
      def model = nil

      # @return [nil]
      def primary_key = nil

      # @return [nil] relationships are read from the objects
      def association(_name) = nil

      # @return [ObjectRows] itself
      def types = self

      # @return [ObjectRows] itself
      def scopes = self

      # @return [Boolean] whether the object is {Records}
      def own?(object) = object.is_a?(Records)

      # @return [Boolean] false, because the type of ids is unknown
      def integer?(_column) = false

      # @param object [Class, nil] the model of related records
      # @return [Object] its adapter
      def related(object) = object ? Rows.for(object) : self

      # Only yields: there is no connection to release.
      def apart = yield

      # @return [nil] objects are in no database
      def place = nil

      # Only yields.
      def within(_place) = yield

      # Does nothing: there is no connection to close.
      def disconnect_idle = nil

      # @return [String] JSON text
      def json(value) = JSONValue.text(value)

      # @return [Plan::RowSet]
      def fetch(plan, records, viewer: nil, scopes: ViewerScopes.new(viewer), beside: nil)
        plan.derive([:reader, nil]) { Reader.new(plan, self) }.call(records, viewer: viewer, scopes: scopes, beside: beside)
      end

      # Reads plain objects through their public methods, and hashes through their keys.
      #
      #   ObjectRows::Instances.new.read([{ title: "Keep" }, Article.new("Motte")], :title)   # => ["Keep", …]
      class Instances
        # @param adapter [Object, nil] the adapter of the records' model, if any
        def initialize(adapter = nil)
          @adapter = adapter
          @model = adapter&.model
        end

        # @return [Array<Object>] one value for each record
        def read(records, name) = records.map { |record| value(record, name) }

        # @param name [Symbol] a column
        # @return [Array<Object>] the values as stored, if loaded; does not call the model's readers
        def stored(records, name) = records.map { |record| stored_value(record, name) }

        # @param names [Array<Symbol, nil>] columns
        # @return [Array(Array<Array>, Array<Symbol, nil>), nil] a row for each record, and the columns'
        #   coders (columns without a coder have no values); nil if the records must be read value by value
        def rows(_records, _names) = nil

        # @return [Boolean] whether the record's relationship can be read without a query
        def loaded?(_record, _name) = true

        # @return [Array<Object>] the related records, in order
        def related(record, name) = list(value(record, name))

        # @return [Boolean] whether all of these records are stored in the database
        def stored?(_records) = false

        # @return [Boolean] whether this object can read all of the records
        def all?(_records) = true

        # Preloads associations of the records.
        def preload(_records, _names); end

        # Preloads one association of all records if preloading finds the same records as lazy loading.
        # Otherwise loads nothing, so that each record loads its own later.
        def preload_where_same(_records, _name); end

        private

        def stored_value(record, name)
          return record.attribute_in_database(name) if record.respond_to?(:attribute_in_database) && record.has_attribute?(name)
          return record.values[name] if defined?(::Sequel::Model) && record.is_a?(::Sequel::Model) && record.values.key?(name)

          value(record, name)
        end

        def value(record, name)
          return record.fetch(name) { record.fetch(name.name) { missing(record, name) } } if record.is_a?(Hash)

          record.public_send(name)
        rescue NoMethodError => error
          raise if error.name != name || record.respond_to?(name, true)

          raise Error, "a record of #{record.class} has no #{name} (it is #{record.inspect[0, 60]})"
        end

        def missing(record, name)
          raise Error, "a record given as a Hash has no #{name.inspect} (it has #{record.keys.first(20).map(&:inspect).join(", ")})"
        end

        def list(found) = Records.list?(found) ? found.to_a : [found].compact
      end
    end
  end
end
