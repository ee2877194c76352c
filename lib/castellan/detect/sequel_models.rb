# frozen_string_literal: true

module Castellan
  module Detect
    # Reads associations of Sequel models and writes code for them.
    #
    #   SequelModels.link(User, :roles)      # => a {ModelAssociation}
    #   SequelModels.preload(employee: {})   # => "eager(:employee)"
    #
    # The methods are documented in {ActiveRecordModels}.
    module SequelModels
      COLUMN = /Sequel\.desc\(:\w+\)|:\w+/
      ORDERED = /\A(?:(where\([^()]*\))\.)?order\((#{COLUMN}(?:, #{COLUMN})*)\)\z/
      private_constant :COLUMN, :ORDERED

      class << self
        def model?(owner) = defined?(Sequel::Model) && owner.is_a?(Class) && owner <= Sequel::Model

        # @param database [Integer, nil] see {Shape#database}; if models of this database have the table, only
        #   these are returned
        # @return [Array<Class>] the models that use the table
        def of_table(table, database = nil)
          return [] unless defined?(Sequel::Model)

          models = descendants(Sequel::Model).select { |model| model.name && table_of(model) == table }
          own = database && models.size > 1 ? models.select { |model| database_of(model) == database } : []
          own.any? ? own : models
        end

        def link(owner, name)
          reflection = owner.association_reflection(name)
          reflection && make(owner, reflection)
        end

        def links(owner) = owner.all_association_reflections.filter_map { |reflection| make(owner, reflection) }

        # Sequel has no polymorphic associations.
        def polymorphic(_owner) = []

        def all(model) = model.dataset

        def relation(link)
          owner = link.model.call(link.model.columns.to_h { |name| [name, 1] })
          owner.public_send(link.model.association_reflection(link.name).dataset_method)
        end

        # (see ActiveRecordModels.limited?)
        # Sequel applies its own option `limit:` for each owner, but not the limit of a block.
        def limited?(link)
          block = link.target && link.model.association_reflection(link.name)[:block] or return false
          block.call(link.target.dataset).opts.values_at(:limit, :offset).any?
        rescue StandardError
          false # the block can only be evaluated inside of a request
        end

        # Sequel raises an error at `eager` of these: an association with `instance_specific:`, or with a
        # `dataset:` and no `eager_loader:`.
        def preloads?(link) = link.model.association_reflection(link.name)[:allow_eager] != false

        # @return [String] why {#preloads?} is false
        def not_preloaded = "it is declared with allow_eager: false, instance_specific: or dataset:"

        def preload(tree) = "eager(#{Preload.arguments(tree)})"

        # `each` ignores `eager`; `all` does not.
        def unlisted = " and .all"

        # With `order:`, but not with an order in the block, Sequel loads only the first record of each owner.
        def scoped(name, link, scope)
          options = { class: link.target.name, **link.model.association_reflection(link.name).slice(:key) }.compact
          options = options.map { |option, value| "#{option}: #{value.inspect}" }
          conditions, order = scope.match(ORDERED)&.captures || [scope]
          options << "order: #{order.include?(", ") ? "[#{order}]" : order}" if order
          "one_to_one(:#{name}, #{options.join(", ")})#{" { |dataset| dataset.#{conditions} }" if conditions}"
        end

        # @param scope [String] the scope of a declaration of {#scoped}
        # @return [Boolean] whether it loads only the first record of each owner
        def first_of_each?(scope) = scope.match?(ORDERED)

        def records(where, column, unique) = "#{where}.#{unique ? "as_hash" : "to_hash_groups"}(:#{column})"
        def existing(where, column) = "#{where}.distinct.select_map(:#{column})"

        def calculation(where, column, function, of)
          return "#{where}.group_and_count(:#{column}).as_hash(:#{column}, :count)" if function == "count" && of.nil?

          "#{where}.group(:#{column}).select_hash(:#{column}, Sequel.function(:#{function}, :#{of}).as(:#{function}))"
        end

        def unordered = "unordered"

        def insert_many(model) = "#{model.name}.multi_insert(rows)"

        def order(columns)
          columns = columns.split(", ").map { |column| column.split(": :") }
          "order(#{columns.map { |name, way| way == "desc" ? "Sequel.desc(:#{name})" : ":#{name}" }.join(", ")})"
        end

        def column?(model, name) = model.columns.include?(name.to_sym)

        # (see ActiveRecordModels.sample); Sequel does not cast values of conditions
        def sample(_model, _name) = "1"

        def primary_key(model) = model.primary_key.to_s

        # Statements do not name their model, but a subclass (single-table inheritance) adds an IN list of its
        # kinds.
        def kind_column(shape)
          model = of_table(shape.table, shape.database).find { |one| one.respond_to?(:sti_key) && one.sti_key } if shape.listed?
          model&.sti_key&.to_s
        end

        # @return [nil] Sequel's statements do not name their model
        def named(_shape) = nil

        def scope?(model, name) = model.dataset.respond_to?(name) && !Sequel::Dataset.method_defined?(name)

        private

        def descendants(model) = model.subclasses.flat_map { |subclass| [subclass, *descendants(subclass)] }

        def make(owner, reflection)
          join = reflection[:join_table]
          target = reflection.associated_class
          ModelAssociation.new(name: reflection[:name], model: owner, declared: reflection[:model], target: target,
                               table: table_of(target), keys: keys_of(reflection), to: reflection.returns_array? ? :many : :one,
                               foreign: reflection[:type] != :many_to_one, through: (last_part(join) if join))
        rescue NameError, Sequel::Error
          nil # the class of the association does not exist
        end

        def keys_of(reflection)
          keys = case reflection[:type]
                 when :many_to_one then reflection.primary_key
                 when :many_to_many, :one_through_one then reflection[:left_keys] || reflection[:left_key]
                 else reflection[:keys] || reflection[:key]
                 end
          Array(keys).map(&:to_s)
        end

        def table_of(model)
          last_part(model.dataset.first_source_table)
        rescue Sequel::Error
          nil
        end

        def database_of(model)
          Instrument::Databases.number(Instrument::SequelInstrument.name_of(model.db))
        rescue Sequel::Error
          nil
        end

        def last_part(table)
          table = table.column if table.is_a?(Sequel::SQL::QualifiedIdentifier)
          table.to_s[/[^.]+\z/].to_s.downcase
        end
      end
    end
  end
end
