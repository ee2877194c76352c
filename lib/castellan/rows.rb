# frozen_string_literal: true

# Runs a fetch plan through the application's ORM and returns rows, without model instances.
#
#   require "castellan/rows"
#   adapter = Castellan::Rows.for(User)          # an ActiveRecord or Sequel model, relation or dataset
#   adapter.fetch(plan, User.where(active: true)) # => #<Castellan::Plan::RowSet …>
#
# Each type is read in the first of three tiers that covers all its
# members. `Document#explain` names the tier:
#
# 1. Columns of the table or at the end of to-one paths, and ids of related records: one
#    SELECT, plus one per to-many relationship.
# 2. LIMITs in association scopes (applied to each parent) and polymorphic ids, also in SQL.
# 3. Everything else through model instances, loaded in one batch: blocks that take the record, overridden
#    readers, scopes that take their owner, composite keys and keys of two types. See {ModelReasons}.
#
# Only SQLite and PostgreSQL are read as rows; types of other databases are read through models.
require_relative "errors"
require_relative "nearest"
require_relative "plan"
require_relative "postgres_statements"
require_relative "sqlite_statements"

module Castellan
  module Rows
    autoload :ActiveRecordRows, "castellan/rows/active_record_rows"
    autoload :SequelRows, "castellan/rows/sequel_rows"
    autoload :PostgresDriver, "castellan/rows/postgres_driver"

    TABLES = {} # rubocop:disable Style/MutableConstant
    TABLES_LOCK = Mutex.new
    private_constant :TABLES, :TABLES_LOCK

    # @param object [Class, Object, Symbol, nil] an ActiveRecord model or relation, a Sequel model or dataset,
    #   or the name of a table; nil for plain objects
    # @return [ActiveRecordRows, SequelRows, ObjectRows] a frozen adapter
    # @raise [DeclarationError] if the object is something else
    def self.for(object)
      return ObjectRows.new if object.nil?

      object = named(object)
      return ActiveRecordRows.for(object) if active_record?(object)
      return SequelRows.for(object) if sequel?(object)

      raise DeclarationError, "#{object.inspect} cannot be read as rows: give an ActiveRecord model or relation, " \
                              "or a Sequel model or dataset such as DB[:users]"
    end

    # @param object [Symbol, String, Object] the name of a table or view without a class, or any other object
    # @return [Object] for a name, a Sequel dataset or an anonymous
    #   ActiveRecord class; otherwise the object itself
    # @raise [DeclarationError] if several databases, or none, may have the table
    def self.named(object)
      return object unless object.is_a?(Symbol) || object.is_a?(String)

      databases = defined?(::Sequel::DATABASES) ? ::Sequel::DATABASES : []
      connected = defined?(::ActiveRecord::Base) && ::ActiveRecord::Base.connected?
      return databases.first[object.to_sym] if databases.size == 1 && !connected
      if databases.empty? && (connected || configured?)
        return TABLES_LOCK.synchronize { TABLES[object.to_sym] ||= table_model(object.to_s) }
      end

      raise DeclarationError, "it is not clear which database has the table #{object.inspect} (ActiveRecord is " \
                              "#{"not " unless connected}connected, Sequel has #{databases.size} databases): give an ActiveRecord " \
                              "model, or a Sequel model or dataset such as DB[:#{object}]"
    end

    # @param adapter [Object] the adapter of the relationship's owner
    # @param definition [Resource::Definition] a related definition; its model defaults to the association's
    # @return [Object] the adapter that reads the related rows
    def self.related(adapter, relationship, definition)
      return adapter.related(definition.model) if definition.model

      association = adapter.association(relationship.association_name)
      association && association.reason.nil? ? association.adapter : ObjectRows.new
    end

    # @param adapter [Object] the adapter of the declared model
    # @return [Object] the given adapter if it can read all records, otherwise
    #   one for their class or plain objects
    def self.adapter_for(adapter, records)
      return adapter if records.empty? || (adapter.model && adapter.instances.all?(records))

      classes = records.map(&:class).uniq
      classes.size == 1 && model?(classes.first) ? self.for(classes.first) : ObjectRows.new
    end

    # @return [Boolean] whether the object is a relation or a dataset
    def self.scope?(object)
      (defined?(::ActiveRecord::Relation) && object.is_a?(::ActiveRecord::Relation)) ||
        (defined?(::Sequel::Dataset) && object.is_a?(::Sequel::Dataset)) || false
    end

    # ActiveRecord connects with its first query.
    # @return [Boolean] whether it has a database
    def self.configured?
      defined?(::ActiveRecord::Base) && !::ActiveRecord::Base.connection_pool.nil?
    rescue ::ActiveRecord::ActiveRecordError
      false
    end
    private_class_method :configured?

    def self.table_model(name)
      Class.new(::ActiveRecord::Base) do
        self.table_name = name
        self.inheritance_column = nil
      end
    end
    private_class_method :table_model

    def self.model?(object)
      !scope?(object) && (active_record?(object) || sequel?(object))
    end
    private_class_method :model?

    def self.active_record?(object)
      return false unless defined?(::ActiveRecord::Base)

      object.is_a?(::ActiveRecord::Relation) || (object.is_a?(Class) && object < ::ActiveRecord::Base)
    end
    private_class_method :active_record?

    def self.sequel?(object)
      return false unless defined?(::Sequel)

      object.is_a?(::Sequel::Dataset) || (defined?(::Sequel::Model) && object.is_a?(Class) && object < ::Sequel::Model)
    end
    private_class_method :sequel?
  end
end

require_relative "rows/ids"
require_relative "rows/batches"
require_relative "rows/dialect"
require_relative "rows/column_values"
require_relative "rows/association"
require_relative "rows/inheritance"
require_relative "rows/link"
require_relative "rows/json_value"
require_relative "rows/computed_members"
require_relative "rows/model_reasons"
require_relative "rows/reading"
require_relative "rows/linkage"
require_relative "rows/records"
require_relative "rows/together"
require_relative "rows/object_rows"
require_relative "rows/record_reader"
require_relative "rows/viewer_scopes"
require_relative "rows/plan_scopes"
require_relative "rows/compared_column"
require_relative "rows/keyset"
require_relative "rows/union"
require_relative "rows/scopes"
require_relative "rows/adapter"
require_relative "rows/joined_paths"
require_relative "rows/node_reader"
require_relative "rows/reader"
require_relative "rows/statement_tables"
require_relative "rows/equality"
require_relative "rows/tables_read"
require_relative "rows/linter"
