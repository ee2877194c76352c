# frozen_string_literal: true

require "sequel"
require_relative "../rows"

module Castellan
  module Rows
    # Reads rows of a Sequel model or of a dataset (a table, a view, any SELECT).
    # The SQL comes from the public dataset API and runs on Sequel's connection.
    #
    #   SequelRows.for(MailLog).fetch(plan, MailLog.where(in_or_out: "in"))
    #   SequelRows.for(DB[:company_statistics]).columns   # => [:company_id, :company_name, …]
    #
    # The result equals what each association's dataset returns. A dataset has no associations. Works with
    # frozen databases and models. Frozen.
    class SequelRows
      include Adapter

      # @param object [Class, Sequel::Dataset]
      def self.for(object) = new(object.respond_to?(:model) && object.is_a?(::Sequel::Dataset) ? object.model : object)

      # @return [Class, Sequel::Dataset]
      def self.model_of(object) = object

      # @param memo [BoundedCache] shared by the adapters of associated models
      def initialize(model, memo = BoundedCache.new(limit: 10_000))
        start(model, memo)
        @dataset = (model.is_a?(::Sequel::Dataset) ? model : model.dataset).naked
        @database = @dataset.db
        @dialect = Dialect.for(DIALECTS.fetch(database.adapter_scheme, :other))
        @types = ColumnTypes.new(@dataset, model? ? model : nil, @dialect.name)
        @session = Session.new(database, dialect)
        @scopes = Scopes.new(self, @dataset)
        @instances = Instances.new(self)
        freeze
      end

      DIALECTS = { sqlite: :sqlite, postgres: :postgres }.freeze
      SERVER = :read_only
      private_constant :DIALECTS, :SERVER

      # @!group Checking declarations

      # @return [Array<Symbol>]
      def columns = @dataset.columns

      # @return [Symbol, nil] nil if there is no primary key (a view), or one of several columns
      def primary_key
        return types.primary_key unless model?

        model.primary_key if model.primary_key.is_a?(Symbol)
      end

      # @return [String] the table's name
      def table
        source = @dataset.first_source_table
        (source.is_a?(::Sequel::SQL::QualifiedIdentifier) ? source.column : source).to_s
      end

      # @return [Association, nil] nil if the model has no association of that name
      def association(name)
        reflection = model? && model.association_reflection(name)
        reflection && @memo.fetch([model, name]) { Association.new(self, reflection) } || nil
      end

      # @return [Array<Symbol>]
      def associations = model? ? model.associations : []

      # @!endgroup

      # @param _name [String, nil] the log of Sequel has no names
      # @yieldparam session [Session]
      def session(_name = nil)
        yield @session
      end

      # Sequel checks out a connection for each statement, so there is none to release after the block.
      def apart
        yield
      end

      # Runs the block in the caller's transaction, or in a new one where all statements see the same rows.
      def snapshot(&block)
        return yield if database.in_transaction?(server: SERVER)

        database.transaction(server: SERVER, **(dialect.name == :postgres ? { isolation: :repeatable } : {}), &block)
      end

      # @return [Boolean]
      def same_database?(other) = other.is_a?(SequelRows) && database.equal?(other.database)

      protected

      # @return [Sequel::Database]
      attr_reader :database

      private

      def model? = model.is_a?(Class)
    end
  end
end

require_relative "sequel_rows/instances"
require_relative "sequel_rows/session"
require_relative "sequel_rows/column_types"
require_relative "sequel_rows/scope_identity"
require_relative "sequel_rows/scopes"
require_relative "sequel_rows/association"
require_relative "sequel_rows/siblings"
