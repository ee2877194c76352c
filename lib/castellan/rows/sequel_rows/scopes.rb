# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Implements {Rows::Scopes} with Sequel datasets.
      class Scopes < Rows::Scopes
        USUAL = %i[from model row_proc where order limit offset].freeze # never change which columns are read
        WINDOW = %i[order limit offset].freeze

        # An order by a path, which needs only the model's own table.
        class PathSQL < ::Sequel::LiteralString
        end
        private_constant :USUAL, :WINDOW, :PathSQL

        # @param dataset [Sequel::Dataset] returns all rows, as hashes
        def initialize(adapter, dataset)
          @dataset = dataset
          @own = dataset.opts[:from] if (dataset.opts.keys - USUAL).empty?
          of_one_server(dataset)
          @rewritten = SequelRows.rewritten?(dataset)
          model = adapter.model
          super(adapter, Array(model.is_a?(Class) ? model.primary_key : adapter.primary_key))
        end

        # @param object [Class, Sequel::Dataset]
        # @return [Sequel::Dataset] custom SQL, compounds (a union without from_self) and DISTINCT ON become a
        #   subquery, whose order the database keeps if the statement adds none
        def from(object)
          object = object.dataset if object.is_a?(Class)
          return object unless object.is_a?(::Sequel::Dataset) && (object.opts[:sql] || object.opts[:compounds] || distinct_on?(object))

          object.from_self(alias: @dataset.first_source_alias)
        end

        # @return [Sequel::Dataset] all rows
        def all = from(model)

        # @return [Boolean] whether the object can be passed to {Adapter#fetch}
        # @raise [ConfigurationError] for a dataset with a server, because related rows would come from another one
        def own?(object)
          return false unless object.is_a?(::Sequel::Dataset) && object.opts[:from] && !object.opts[:sql] && rows_of_model?(object)

          of_one_server(object)
        end

        # (see ActiveRecordRows::Scopes#reason)
        def reason(dataset)
          return if dataset.is_a?(Ids::Chosen)
          return @unreadable if @unreadable

          opts = dataset.opts
          return if @own && opts[:from] == @own && (opts.keys - USUAL).empty?

          own = @dataset.opts
          if subquery?(dataset) then "its rows come from a union, a subquery or custom SQL"
          elsif expressions?(dataset) then "it selects something else than columns"
          elsif %i[group having].any? { |name| opts[name] && opts[name] != own[name] } then "it has GROUP BY or HAVING"
          elsif repeats?(dataset) && !own_order?(dataset)
            "it joins tables, and its order is not made of qualified columns of its own table alone, as in order(Sequel[:users][:name])"
          end
        end

        # Loads the records of a scope (hashes of a dataset), each once, in one
        # statement through the caller's dataset.
        # @param whole [Boolean] select all columns, unless the scope selects expressions
        # @return [Array<Sequel::Model, Hash>]
        def load(scope, whole: false)
          dataset = narrowed(scope)
          repeats = repeats?(dataset) || (keys && subquery?(dataset))
          plain = !expressions?(dataset) && dataset.opts[:group].nil?
          dataset = dataset.select_all(dataset.first_source_alias) if plain && (repeats || (whole && dataset.opts[:select]))
          dataset = at_keys(dataset.clone(distinct: nil)) if plain && repeats && limited?(dataset)
          dataset = dataset.clone(distinct: nil) if plain && repeats && dataset.opts[:distinct]&.empty? && path_order?(dataset)
          dataset.all.uniq
        end

        # With a subquery, the condition is applied through the keys, because
        # the subquery may have other columns.
        # (see Rows::Scopes#where_sql)
        def where_sql(dataset, sql)
          return dataset.where(raw(sql)) unless keys && subquery?(dataset)

          with_values(dataset, keys, @dataset.where(raw(sql)).select(*qualify(@dataset, keys)))
        end

        # (see Rows::Scopes#bound)
        def bound(scope) = (ScopeIdentity.of(scope.is_a?(Ids::Chosen) ? scope.relation : scope, @dataset) unless @rewritten)

        # @return [Boolean] see {SequelRows.rewritten?}
        def rewritten? = @rewritten

        # (see Rows::Scopes#constant_identity)
        def constant_identity
          super if !model? || SequelRows.library?(model.method(:dataset))
        end

        # (see ActiveRecordRows::Scopes#plain?)
        def plain?(dataset)
          own = all.opts
          dataset.opts.keys.union(own.keys).all? { |key| %i[where order].include?(key) || dataset.opts[key] == own[key] }
        end

        # (see ActiveRecordRows::Scopes#joinable?)
        def joinable?(scope)
          opts = scope.opts
          !opts[:order].nil? && opts[:lock].nil? && opts[:from].size == 1
        end

        # (see ActiveRecordRows::Scopes#extent)
        def extent(scope)
          opts = scope.opts
          return opts[:limit].to_i if opts[:limit].is_a?(Integer)
          return 0 if opts.values_at(:limit, :distinct, :lock).any?

          :all if opts.values_at(:where, :join, :offset).none?
        end

        # @return [Boolean] whether {#select_by_ids_sql} is constant; false for filtered models
        def constant_by_ids? = model? && model.simple_table && !@rewritten ? true : false

        # @return [Boolean] false: only polymorphic associations need it, and those are read through models
        def hide_rows? = false

        # (see Rows::Scopes#reads_subquery?)
        def reads_subquery?
          source = all.first_source_table
          !source.is_a?(Symbol) && !source.is_a?(::Sequel::SQL::Identifier) && !source.is_a?(::Sequel::SQL::QualifiedIdentifier)
        end

        # @!group Used by {Association::LazyStatement}

        def select(dataset, list, joins = nil)
          dataset = dataset.clone(from: [raw("#{dataset.literal(dataset.opts[:from].first)} #{joins}")]) if joins
          sql(dataset.select(raw(list)))
        end

        # A dataset of `nullify` sends no statement, but writes the one of its rows.
        def sql(dataset) = SequelRows.sql(empty?(dataset) ? dataset.where(false) : dataset)
        def raw(sql) = ::Sequel.lit(sql)
        def terms(dataset) = dataset.opts[:order] || []
        def reorder(dataset, terms) = dataset.order(*terms)

        def unqualified_order?(dataset)
          terms(dataset).any? do |term|
            term = term.expression if term.is_a?(::Sequel::SQL::OrderedExpression)
            term.is_a?(Symbol) || term.is_a?(::Sequel::SQL::Identifier) || (term.is_a?(::Sequel::LiteralString) && !term.include?("."))
          end
        end

        # DISTINCT ON requires its order.
        def unordered(dataset) = distinct_on?(dataset) ? dataset : dataset.unordered
        def unlimited(dataset) = dataset.unlimited

        # (see ActiveRecordRows::Scopes#first)
        def first(dataset)
          (dataset.opts[:offset] || distinct_on?(dataset) ? dataset : dataset.clone(distinct: nil)).limit(1)
        end

        def distinct?(dataset) = !dataset.opts[:distinct].nil?
        def grouped?(dataset) = dataset.opts.values_at(:group, :having, :compounds).any?
        def locked?(dataset) = !dataset.opts[:lock].nil?

        # @return [Boolean] whether rows may match without the owner's key: `or` in the block of an association
        def either?(dataset, condition = dataset.opts[:where])
          return false unless condition.is_a?(::Sequel::SQL::BooleanExpression)

          case condition.op
          when :AND then condition.args.any? { |one| either?(dataset, one) }
          when :OR then Rows::Association::OwnerKey.in?(dataset.literal(condition))
          else false
          end
        end

        def joins?(dataset) = dataset.joined_dataset?

        # @!endgroup

        # (see Rows::Scopes#default_context)
        def default_context = (true unless database.sharded?)

        private

        # @raise [ConfigurationError] for a dataset with a server; a model's own dataset may have one, too
        def of_one_server(dataset)
          server = dataset.opts[:server]
          return true if [nil, :default, :read_only].include?(server)

          raise ConfigurationError, "a dataset of server #{server.inspect} cannot be read as rows: leave its server out, and write the " \
                                    "document inside DB.with_server(#{server.inspect}) { … } (Sequel's extension server_block)"
        end

        def distinct_on?(dataset) = dataset.opts[:distinct]&.any? || false
        def empty?(dataset) = defined?(::Sequel::Dataset::NullDataset) && dataset.is_a?(::Sequel::Dataset::NullDataset)

        def expressions?(dataset)
          selected = dataset.opts[:select]
          !(selected.nil? || selected == @dataset.opts[:select] || selected.all? { |one| column?(one) })
        end

        def column?(selected)
          case selected
          when Symbol, ::Sequel::SQL::ColumnAll, ::Sequel::SQL::Identifier, ::Sequel::SQL::QualifiedIdentifier then true
          else false
          end
        end

        def own_order?(dataset)
          terms(dataset).all? do |term|
            term = term.expression if term.is_a?(::Sequel::SQL::OrderedExpression)
            next !distinct_on?(dataset) if term.is_a?(PathSQL) # it requires its order

            term.is_a?(::Sequel::SQL::QualifiedIdentifier) && table_name(term.table) == dataset.first_source_alias.to_s
          end
        end

        # PostgreSQL refuses DISTINCT with such an order.
        def path_order?(dataset)
          terms(dataset).any? { |term| term.is_a?(::Sequel::SQL::OrderedExpression) && term.expression.is_a?(PathSQL) }
        end

        def table_name(table) = (table.is_a?(::Sequel::SQL::Identifier) ? table.value : table).to_s

        def repeats?(dataset) = !keys.nil? && (joins?(dataset) || distinct?(dataset))
        def bare(dataset) = dataset.clone(lock: nil)
        def plain(dataset) = dataset.opts[:distinct] && keys ? dataset.clone(distinct: nil) : dataset
        def fresh(dataset) = dataset.db.from(dataset.first_source)
        def with_window(dataset, other) = dataset.clone(other.opts.slice(*WINDOW))

        def qualify(dataset, columns)
          return ::Sequel.qualify(dataset.first_source_alias, columns) unless columns.is_a?(Array)

          qualified = columns.map { |column| qualify(dataset, column) }
          columns.one? ? qualified.first : qualified
        end

        def with_values(dataset, columns, values) = dataset.where(qualify(dataset, columns) => values)

        # An order without a table may name other columns of the SELECT list.
        def values(dataset, columns)
          dataset = dataset.naked
          return dataset.select_all(dataset.first_source_alias).map(columns) if unqualified_order?(dataset)

          dataset.select(*qualify(dataset, columns)).map(columns)
        end

        # Unlike `to_a`, `all` also runs the dataset's eager loading.
        def records(dataset) = dataset.all
        def everything = all
        def model? = model.is_a?(Class)
        def database = @dataset.db

        # Returns the server for reads, which `with_server` changes for a block: a name, or with the extension
        # arbitrary_servers a Hash.
        def surroundings = [(database.pool.send(:pick_server, :read_only).inspect if database.sharded?)]

        def value(sql) = database.fetch(sql).single_value

        # Drops ids that are not a date or time, because PostgreSQL would reject the comparison.
        def possible(ids, column)
          type = types.type(column)
          return ids unless %i[date datetime time].include?(type)

          ids.select do |id|
            database.typecast_value(type, id)
          rescue ::Sequel::InvalidValue
            false
          end
        end

        # Returns whether the dataset selects rows of the model, perhaps as a subquery;
        # one without a model returns hashes.
        def rows_of_model?(dataset)
          return dataset.first_source_alias == @dataset.first_source_alias unless model? && subquery?(dataset)

          dataset.respond_to?(:model) && dataset.model <= model
        end

        def subquery?(dataset) = dataset.opts[:from] != @dataset.opts[:from]

        def apart?(dataset)
          subquery?(dataset) || expressions?(dataset) || (dataset.opts[:distinct]&.empty? && limited?(dataset)) ||
            (dataset.opts[:select] && dataset.opts[:select] != @dataset.opts[:select]) || false
        end

        def term(dataset, column, direction)
          column = if column.is_a?(ComparedColumn)
                     PathSQL.new(column.sql { |own| dataset.literal(qualify(dataset, own)) })
                   else
                     qualify(dataset, column)
                   end
          ::Sequel.public_send(direction, column)
        end

        # A subquery has an order of its own.
        def further_order(dataset, terms)
          subquery?(dataset) && dataset.opts[:order].nil? ? dataset : dataset.order_append(*terms)
        end

        def by_key(_scope, direction)
          names = [primary_key, qualify(@dataset, primary_key), ::Sequel[@dataset.first_source_alias.to_s.to_sym][primary_key]]
          [*(names if direction == :asc), *names.map { |name| ::Sequel.public_send(direction, name) }]
        end

        def whole?(scope) = dialect.name != :other && constant_by_ids? && scope.equal?(model.dataset)

        # Identifies a dataset without building its SQL, like {ActiveRecordRows::Scopes::ScopeIdentity}.
        #
        #   ScopeIdentity.of(viewer.posts_dataset, Post.dataset)           # => ["\0Post posts = …", [7]]
        #   ScopeIdentity.of(Post.join(:viewers, id: :x), Post.dataset)    # => nil: its SQL must be built
        module ScopeIdentity
          extend Rows::Scopes::Identity

          MARK = Rows::Scopes::Identity::MARK
          KNOWN = %i[from model row_proc where order limit offset association_reflection model_object].freeze
          OPERATORS = %i[AND OR NOT = != > >= < <= IS IN].push(:"IS NOT", :"NOT IN").freeze
          METHODS = "Sequel::Model::Associations::AssociationDatasetMethods"
          private_constant :MARK, :KNOWN, :OPERATORS, :METHODS

          module_function

          # @param dataset [Sequel::Dataset]
          # @param own [Sequel::Dataset] the model's dataset
          # @return [Array(String, Array), nil] shape and values; nil if the dataset has more than conditions
          #   on columns, conditions as text, an order and a limit, or has methods of its own
          def of(dataset, own) = identity(dataset, own, KNOWN)

          # @param kept [Sequel::Dataset] the association's dataset without its owner, which Sequel keeps
          # @return [Array(String, Array), nil] as {of}; the tables that the association joins and its SELECT list
          #   do not count while they are those of `kept`
          def of_association(dataset, kept, own)
            same = kept.opts.keys.select { |name| dataset.opts[name].equal?(kept.opts[name]) }
            identity(dataset, own, KNOWN + same) if of(own, own)
          end

          def identity(dataset, own, known)
            return unless plain_class?(dataset.class, own.class)

            catch(:unknown) do
              opts = dataset.opts
              opts.each_key { |name| throw :unknown unless known.include?(name) }
              shape = "#{MARK}#{opts[:model]&.name}"
              bound = []
              opts[:from].each { |table| column(table, shape) }
              expression(opts[:where], shape, bound) if opts[:where]
              shape << " order" if opts[:order]
              opts[:order]&.each { |term| order(term, shape) }
              %i[limit offset].each { |name| expression(opts[name], shape << " " << name.name, bound) if opts[name] }
              [shape, bound]
            end
          end

          # An extended dataset may write other SQL.
          def plain_class?(given, own)
            given.equal?(own) ||
              (given.superclass.equal?(own) && given.ancestors[1].name == METHODS && given.ancestors[2].equal?(own))
          end

          def expression(node, shape, bound)
            case node
            when ::Sequel::SQL::BooleanExpression then operation(node, shape, bound)
            when ::Sequel::LiteralString then text(node, shape)
            when Integer, String, true, false, nil then value(node, bound) && shape << " ?"
            when Array
              shape << " ["
              node.each { |inner| expression(inner, shape, bound) }
              shape << " ]"
            when ::Sequel::SQL::PlaceholderLiteralString
              text(node.str, shape << (node.parens ? " (" : " "))
              expression(node.args, shape, bound)
            else column(node, shape)
            end
          end

          def operation(node, shape, bound)
            throw :unknown unless OPERATORS.include?(node.op)

            shape << " (" << node.op.name
            node.args.each { |argument| expression(argument, shape, bound) }
            shape << ")"
          end

          def order(term, shape)
            return text(term, shape) if term.is_a?(::Sequel::LiteralString)
            return column(term, shape) unless term.is_a?(::Sequel::SQL::OrderedExpression)

            column(term.expression, shape << (term.descending ? " desc " : " asc ") << term.nulls.to_s)
          end

          def column(node, shape)
            case node
            when Symbol then shape << MARK << node.name
            when ::Sequel::SQL::Identifier then shape << MARK << "identifier" << MARK << node.value.to_s
            when ::Sequel::SQL::QualifiedIdentifier
              shape << MARK << "of"
              [node.table, node.column].each { |part| part.instance_of?(String) ? text(part, shape) : column(part, shape) }
            else throw :unknown
            end
          end
          private_class_method :identity, :plain_class?, :expression, :operation, :order, :column
        end
      end
    end
  end
end
