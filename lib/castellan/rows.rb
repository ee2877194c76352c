# frozen_string_literal: true

# Runs a fetch plan on a database through the application's own ORM and answers rows, never instances of models.
#
#   require "castellan/rows"
#   adapter = Castellan::Rows.for(User)          # an ActiveRecord model or relation, a Sequel model or dataset
#   adapter.fetch(plan, User.where(active: true)) # => #<Castellan::Plan::RowSet …>
#
# SQLite and PostgreSQL have SQL of their own; any other database that ActiveRecord or Sequel speaks to is read through
# the ORM's plain statements. Not for documents a client searches by arbitrary SQL: the scope is the caller's.
require_relative "errors"
require_relative "nearest"
require_relative "plan"

module Castellan
  module Rows
    autoload :ActiveRecordRows, "castellan/rows/active_record_rows"
    autoload :SequelRows, "castellan/rows/sequel_rows"
    autoload :PostgresDriver, "castellan/rows/postgres_driver"
    autoload :PreparedStatements, "castellan/rows/prepared_statements"

    # @param object [Class, Object] an ActiveRecord model or relation, a Sequel model or dataset
    # @return [ActiveRecordRows, SequelRows] a frozen adapter
    # @raise [DeclarationError] when it is neither
    def self.for(object)
      return ActiveRecordRows.for(object) if active_record?(object)
      return SequelRows.for(object) if sequel?(object)

      raise DeclarationError, "#{object.inspect} cannot be read as rows: give an ActiveRecord model or relation, " \
                              "or a Sequel model or dataset such as DB[:users]"
    end

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

require_relative "rows/memo"
require_relative "rows/ids"
require_relative "rows/chosen_ids"
require_relative "rows/batches"
require_relative "rows/owner_key"
require_relative "rows/dialect"
require_relative "rows/column_values"
require_relative "rows/correlated"
require_relative "rows/link"
require_relative "rows/computed_members"
require_relative "rows/node_reader"
require_relative "rows/reader"
require_relative "rows/tables_read"
