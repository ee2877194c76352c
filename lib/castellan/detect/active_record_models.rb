# frozen_string_literal: true

module Castellan
  module Detect
    # Reads associations of ActiveRecord models through public reflection and writes code for them.
    #
    #   ActiveRecordModels.link(User, :roles)        # => a {ModelAssociation}
    #   ActiveRecordModels.preload(employee: {})     # => "preload(:employee)"
    module ActiveRecordModels
      # ActiveRecord generates join models with this name for has_and_belongs_to_many.
      JOIN_MODEL = /(?:\A|::)HABTM_/
      CALCULATIONS = { "avg" => "average", "min" => "minimum", "max" => "maximum" }.freeze
      SAMPLES = [1, "00000000-0000-4000-8000-000000000000", "2026-01-31"].freeze
      private_constant :JOIN_MODEL, :CALCULATIONS, :SAMPLES

      class << self
        def model?(owner) = defined?(ActiveRecord::Base) && owner.is_a?(Class) && owner <= ActiveRecord::Base

        # @param _database [Integer, nil] ignored: ActiveRecord's statements name their model
        # @return [Array<Class>] the base classes that use the table
        def of_table(table, _database = nil)
          return [] unless defined?(ActiveRecord::Base)

          ActiveRecord::Base.descendants.select do |model|
            model.name && !model.abstract_class? && model.base_class == model && last_part(model.table_name) == table &&
              !model.name.match?(JOIN_MODEL)
          end
        end

        # @return [ModelAssociation, nil]
        def link(owner, name)
          reflection = owner.reflect_on_association(name)
          reflection && make(owner, reflection)
        end

        # @return [Array<ModelAssociation>] all associations except polymorphic ones
        def links(owner) = owner.reflect_on_all_associations.reject(&:polymorphic?).filter_map { |reflection| make(owner, reflection) }

        # @return [Array<Symbol>] the names of polymorphic associations
        def polymorphic(owner) = owner.reflect_on_all_associations.select(&:polymorphic?).map(&:name)

        def all(model) = model.all

        # @return [ActiveRecord::Relation, nil] the records of one owner; nil if the scope takes the owner as
        #   argument
        def relation(link)
          scope = link.model.reflect_on_association(link.name).scope
          return unless scope.nil? || scope.arity.zero?

          columns = link.model.column_names - [link.model.inheritance_column]
          link.model.instantiate(columns.to_h { |name| [name, 1] }).association(link.name).scope
        end

        # Whether the declared scope has a limit or an offset: a preload applies it once, to the records of all
        # owners together.
        # ActiveRecord itself adds a limit to the query of a `has_one`, so this reads the scope alone.
        def limited?(link)
          scope = link.model.reflect_on_association(link.name).scope
          return false unless link.target && scope&.arity&.zero?

          declared = link.target.unscoped.instance_exec(&scope)
          !(declared.limit_value || declared.offset_value).nil?
        rescue StandardError
          false # the scope can only be evaluated inside of a request
        end

        # A preload of a :through association whose scope has no condition reads the target alone, so an order by another
        # table of the path raises: closure_tree orders `self_and_ancestors` by the generations of its hierarchies.
        # @return [Boolean] whether the library preloads the association at all
        def preloads?(link)
          reflection = link.model.reflect_on_association(link.name)
          scope = reflection.scope
          return true unless reflection.through_reflection? && link.target && scope&.arity&.zero?

          declared = link.target.unscoped.instance_exec(&scope)
          named = declared.to_sql.gsub(/'[^']*'/, "").scan(/([a-z_]\w*)["`]?\./i).flatten
          declared.where_clause.any? || declared.joins_values.any? || (named - link.target.table_name.split(".")).empty?
        rescue StandardError
          true # the scope can only be evaluated inside of a request
        end

        # @return [ModelAssociation, nil] the association whose records a preload of a :through association loads as well
        def between(link)
          reflection = link.model.reflect_on_association(link.name)
          return unless reflection.through_reflection?

          reflection = reflection.through_reflection while reflection.through_reflection?
          link(link.model, reflection.name)
        end

        # @return [String] why {#preloads?} is false
        def not_preloaded = "its order names a table that a preload does not join"

        # @param tree [Hash] `{ posts: { comments: {} } }`
        # @return [String] "preload(posts: :comments)"
        def preload(tree) = "preload(#{Preload.arguments(tree)})"

        # Sequel needs one more call for records that are yielded one by one; ActiveRecord does not. See
        # {SequelModels.unlisted}.
        def unlisted = ""

        # @param scope [String] "where(on_behalf: false).order(id: :desc)"
        # @return [String] the declaration of an association with this scope that loads one record
        def scoped(name, link, scope)
          options = link.model.reflect_on_association(link.name).options.slice(:foreign_key, :primary_key, :as)
          "has_one :#{name}, -> { #{scope} }, class_name: #{link.target.name.inspect}" \
            "#{options.map { |key, value| ", #{key}: #{value.inspect}" }.join}"
        end

        # This and the next three methods extend the condition "Tag.where(id: values)" to one query for all
        # values.
        # @param unique [Boolean] whether the column identifies a record
        # @return [String] "Tag.where(id: values).index_by(&:id)"
        def records(where, column, unique) = "#{where}.#{unique ? "index_by" : "group_by"}(&:#{column})"

        # @return [String] code that returns those of the values that have rows
        def existing(where, column) = "#{where}.distinct.pluck(:#{column})"

        # @param function [String] a SQL function
        # @return [String] "Token.where(user_id: values).group(:user_id).count"
        def calculation(where, column, function, of)
          "#{where}.group(:#{column}).#{CALCULATIONS.fetch(function, function)}#{"(:#{of})" if of}"
        end

        # @param columns [String] see {Shape#order}
        def order(columns) = "order(#{columns})"

        # @return [String] code that drops the order of the model's default scope or of a scope in the code
        def unordered = "reorder(nil)"

        # Not `insert_all`, which silently skips duplicates.
        def insert_many(model) = "#{model.name}.insert_all!(rows)"

        # The columns are unknown if the model's database has no connection.
        def column?(model, name) = asked { model.column_names.include?(name) } || false

        # @return [String] code of a value that the column's type does not cast to nil, as a UUID's does with 1
        def sample(model, name)
          type = asked { model.type_for_attribute(name) } or return "1"
          (SAMPLES.find { |value| serializes?(type, value) } || 1).inspect
        end

        # A type of the application may raise for the value of another type.
        def serializes?(type, value)
          !type.serialize(value).nil?
        rescue StandardError
          false
        end

        def primary_key(model) = asked { model.primary_key }.to_s

        # @param shape [Shape]
        # @return [String, nil] the inheritance column, if a subclass (single-table inheritance) sent the
        #   statement
        def kind_column(shape)
          model = named(shape)
          model.inheritance_column if model && !model.base_class?
        end

        # @return [Class, nil] the model in the statement's name
        def named(shape)
          model = Detect.model(shape.model)
          model if model?(model)
        end

        # Whether the name is a declared scope. A scope only selects rows, but a class method may do anything.
        def scope?(model, name)
          model.respond_to?(name) && model.method(name).source_location&.first.to_s.end_with?("active_record/scoping/named.rb")
        end

        private

        def asked
          yield
        rescue ActiveRecord::ActiveRecordError
          nil
        end

        def make(owner, reflection)
          named = { name: reflection.name, model: owner, declared: reflection.active_record }
          return ModelAssociation.new(**named, to: :one) if reflection.polymorphic?

          root = reflection
          root = root.through_reflection while root.through_reflection?
          ModelAssociation.new(**named, target: reflection.klass, table: last_part(reflection.klass.table_name),
                                        keys: keys_of(root), type: root.type, to: reflection.collection? ? :many : :one,
                                        foreign: !root.belongs_to?, through: through(reflection, root))
        rescue NameError, ArgumentError, ActiveRecord::ActiveRecordError
          nil # the class of the association does not exist
        end

        def through(reflection, root)
          return last_part(reflection.join_table) if reflection.macro == :has_and_belongs_to_many

          last_part(root.table_name) if reflection.through_reflection?
        end

        def keys_of(reflection)
          Array(reflection.belongs_to? ? reflection.association_primary_key : reflection.foreign_key).map(&:to_s)
        end

        def last_part(table) = table.to_s[/[^.]+\z/].to_s.downcase
      end
    end
  end
end
