# frozen_string_literal: true

module Castellan
  module Detect
    # Reads associations of ActiveRecord models by public reflection and writes fixes for them.
    #
    #   ActiveRecordModels.link(User, :roles)        # => a {Link}
    #   ActiveRecordModels.preload(employee: {})     # => "preload(:employee)"
    module ActiveRecordModels
      # The name of the join model that ActiveRecord generates for has_and_belongs_to_many.
      JOIN_MODEL = /(?:\A|::)HABTM_/
      COMPOSITE_FOREIGN_KEYS = Gem::Version.new("7.2")
      private_constant :JOIN_MODEL, :COMPOSITE_FOREIGN_KEYS

      class << self
        # @return [Boolean] whether the class is an ActiveRecord model
        def model?(owner) = defined?(ActiveRecord::Base) && owner.is_a?(Class) && owner <= ActiveRecord::Base

        # @param _database [Integer, nil] not needed: statements name their models
        # @return [Array<Class>] the models of a table, base classes only
        def of_table(table, _database = nil)
          return [] unless defined?(ActiveRecord::Base)

          ActiveRecord::Base.descendants.select do |model|
            model.name && !model.abstract_class? && model.base_class == model && last_part(model.table_name) == table &&
              !model.name.match?(JOIN_MODEL)
          end
        end

        # @return [Link, nil]
        def link(owner, name)
          reflection = owner.reflect_on_association(name)
          reflection && make(owner, reflection)
        end

        # @return [Array<Link>] all associations except polymorphic ones
        def links(owner)
          owner.reflect_on_all_associations.filter_map { |reflection| make(owner, reflection) unless reflection.polymorphic? }
        end

        # @return [Array<String, nil>] the tables of all associations, including join tables; nil stands for
        #   any table (polymorphic)
        def led_to(owner)
          links = owner.reflect_on_all_associations.filter_map { |reflection| make(owner, reflection) }
          links.flat_map { |link| link.target ? [link.table, link.through].compact : [nil] }.uniq
        end

        # @return [Array<Symbol>] the names of polymorphic associations
        def polymorphic(owner) = owner.reflect_on_all_associations.select(&:polymorphic?).map(&:name)

        # @param tree [Hash] `{ posts: { comments: {} } }`
        # @return [String] "preload(posts: :comments)"
        def preload(tree) = "preload(#{Preload.arguments(tree)})"

        # The call to add for records that load one by one; see {SequelModels}, ActiveRecord needs none.
        def unlisted = ""

        # Writes the declaration of an association that loads one chosen record.
        # @param scope [String] "where(on_behalf: false).order(id: :desc)"
        def scoped(macro, name, link, scope)
          reflection = link.model.reflect_on_association(link.name)
          return joined(name, link, scope, reflection) if link.makes == :join_model

          through = ", through: :#{reflection.options[:through]}, source: :#{reflection.source_reflection.name}" if link.through
          "#{macro} :#{name}, -> { #{scope} }#{through || class_and_key(link)}"
        end

        # The model may belong to a database without a connection; its columns are unknown then.
        def column?(model, name) = asked { model.column_names.include?(name) } || false
        def macro(to) = to == :one ? "has_one" : "has_many"
        def order(columns) = "order(#{columns})"
        def primary_key(model) = asked { model.primary_key }.to_s

        # @param shape [Shape] of a statement that a subclass sent (single-table inheritance)
        # @return [String, nil] the inheritance column
        def kind_column(shape)
          model = named(shape)
          model.inheritance_column if model && !model.base_class?
        end

        # @return [String, nil] the column of optimistic locking
        def lock_column(shape)
          model = of_table(shape.table).first
          model.locking_column if model && asked { model.locking_enabled? }
        end

        # @return [Class, nil] the model that the statement's label names
        def named(shape)
          model = shape.model && Object.const_get(shape.model)
          model if model?(model)
        rescue NameError
          nil
        end

        # A class method may do anything, but a scope only chooses rows.
        # @param name [Symbol]
        # @return [Boolean] whether the model declares this scope
        def scope?(model, name)
          model.respond_to?(name) && model.method(name).source_location&.first.to_s.end_with?("active_record/scoping/named.rb")
        end

        # The statement's ON CONFLICT clause chooses the method. Without a clause, use `insert_all!`:
        # `insert_all` would skip duplicates silently.
        # @param shape [Shape] of one INSERT
        # @return [String] "User.insert_all!(rows)"
        def insert_many(model, shape)
          case shape.conflict
          when nil then "#{model.name}.insert_all!(rows)"
          when "update" then "#{model.name}.upsert_all(rows#{unique_by(model, shape.conflict_columns)})"
          else "#{model.name}.insert_all(rows)"
          end
        end

        private

        def joined(name, link, scope, reflection)
          options = reflection.options.slice(:foreign_key, :association_foreign_key).map { |key, value| ", #{key}: #{value.inspect}" }
          "has_and_belongs_to_many :#{name}, -> { #{scope} }, class_name: #{link.target.name.inspect}, " \
            "join_table: #{reflection.join_table.inspect}#{options.join}"
        end

        def unique_by(model, columns)
          return if columns.empty? || columns == [primary_key(model)]

          ", unique_by: #{columns.one? ? columns.first.to_sym.inspect : columns.map(&:to_sym).inspect}"
        end

        def asked
          yield
        rescue ActiveRecord::ActiveRecordError
          nil
        end

        def make(owner, reflection)
          return Link.new(name: reflection.name, model: owner, declared: reflection.active_record, to: :one) if reflection.polymorphic?

          root = reflection
          root = root.through_reflection while root.through_reflection?
          Link.new(name: reflection.name, model: owner, declared: reflection.active_record, target: reflection.klass,
                   table: last_part(reflection.klass.table_name), keys: keys_of(root), type: root.type,
                   to: reflection.collection? ? :many : :one, foreign: !root.belongs_to?,
                   held: (reflection.foreign_key.to_s if reflection.belongs_to?), through: through(reflection, root),
                   makes: (:join_model if joins?(reflection)))
        rescue NameError, ArgumentError, ActiveRecord::ActiveRecordError
          nil # the class of the association does not exist
        end

        def through(reflection, root)
          return last_part(reflection.join_table) if joins?(reflection)

          last_part(root.table_name) if reflection.through_reflection?
        end

        def joins?(reflection) = reflection.macro == :has_and_belongs_to_many

        def keys_of(reflection)
          Array(reflection.belongs_to? ? reflection.association_primary_key : reflection.foreign_key).map(&:to_s)
        end

        def last_part(table) = table.to_s[/[^.]+\z/].to_s.downcase

        # Rails 7.1 takes a composite foreign key as `query_constraints`; later versions take it as
        # `foreign_key` and keep the old option.
        def class_and_key(link)
          options = link.model.reflect_on_association(link.name).options.slice(:foreign_key, :query_constraints, :primary_key, :as)
          options = options.transform_keys(query_constraints: :foreign_key) if ActiveRecord.version >= COMPOSITE_FOREIGN_KEYS
          ", class_name: #{link.target.name.inspect}#{options.map { |key, value| ", #{key}: #{value.inspect}" }.join}"
        end
      end
    end
  end
end
