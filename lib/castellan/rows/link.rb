# frozen_string_literal: true

module Castellan
  module Rows
    # Chooses how the ids of one relationship's related records (its links) are read.
    #
    # | kind           | when                                                   | the links are             |
    # |----------------|--------------------------------------------------------|---------------------------|
    # | `:foreign_key` | belongs_to without a scope                             | the row's own foreign key |
    # | `:one`         | any other to-one association                           | a subquery in the SELECT  |
    # | `:own_rows`    | included has_many over one table                       | a column of related rows  |
    # | `:grouped`     | to-many, in SQLite or with LIMIT, DISTINCT or GROUP BY | a subquery in the SELECT  |
    # | `:pairs`       | any other to-many association                          | a SELECT of two columns   |
    #
    # A subquery applies a LIMIT to each parent. It returns comma-separated ids, so they must be integers or
    # UUIDs. Frozen; valid for one request, and for all requests if no scope is evaluated.
    class Link
      LIST = "castellan_list"
      NOTHING = [].freeze
      # From this many parents on, pairs are read as two arrays, which costs less than a row for each pair.
      MANY = 50
      SELECTS = %i[own_rows pairs].freeze
      private_constant :LIST, :NOTHING, :MANY, :SELECTS

      # @return [Plan::Node::Edge]
      # @return [Object] the association
      # @return [Symbol, nil] see above; nil if the links cannot be read as rows, see {#reason}
      # @return [String] the SQL expression of the related id, on the related table
      # @return [Array<Association::Correlated>] the expressions that this link adds to the row's SELECT
      # @return [String, nil] the column of the related rows that contains the parent's id, if they have one
      # @return [Boolean] whether an index finds the links of one parent
      attr_reader :edge, :association, :kind, :related, :expressions, :parent_column, :indexed

      # @param own_rows [Boolean] whether the related rows may be read together with their parent's id
      # @param whole [Boolean] whether the links of all parents in the table are read
      def initialize(edge, adapter, id_column, own_rows: true, whole: false)
        @edge = edge
        @whole = whole
        @adapter = adapter
        @id_column = id_column
        @own_rows = own_rows && !edge.node.nil?
        @related_id = edge.relationship.definition.id_column
        @association = adapter.association(edge.relationship.association_name)
        @lazy, @related, @may_dangle = @association.links(@related_id, read: @own_rows)
        @kind = choose
        @may_dangle ||= kind == :foreign_key && !edge.node.nil?
        @expressions = NOTHING
        @indexed = %i[pairs own_rows].include?(kind) && adapter.dialect.name == :postgres && association.indexed?
        write
        freeze
      end

      # @return [Link, Link::Polymorphic, nil] nil if the edge writes no linkage
      def self.of(edge, adapter, id_column, own_rows:, whole: false)
        return OfTypes.new(edge, adapter) if edge.relationship.itself?
        return Polymorphic.new(edge, adapter) if edge.alternatives

        new(edge, adapter, id_column, own_rows: own_rows, whole: whole) if edge.data
      end

      # @return [String, nil] why the edge's links cannot be read as rows; nil for polymorphic links, edges
      #   without linkage and composite keys, which are checked elsewhere
      def self.reason(edge, adapter, id_column)
        new(edge, adapter, id_column, own_rows: false).reason unless edge.alternatives || !edge.data || id_column.is_a?(Array)
      end

      # @return [String] a SELECT of all parents' related rows, with the parents' ids as one bound value
      def own_rows_sql(list) = @own_rows_sql.sub(LIST) { list }

      # @return [String, nil] a SELECT of parent id and related id, with the parents' ids as one bound value
      attr_reader :pairs_sql

      # @return [String, nil] {#pairs_sql} as one row of two integer arrays; nil if rows are as fast
      def lists_sql(parents)
        @lists_sql if parents >= MANY
      end

      # @return [String, nil] {#pairs_sql} for all parents in the table, without ids; nil if ids are needed
      attr_reader :whole_sql

      # @return [Boolean] whether related rows may be missing; only links to existing rows are then written
      def may_dangle? = @may_dangle

      # @return [Boolean] whether the links need their own SELECT
      def select? = SELECTS.include?(kind)
      def kept?(now) = association.kept?(now)

      # @return [String, nil] why the links cannot be read as rows
      def reason
        return if kind
        return "it is in another database" unless association.to_many?

        "its scope has LIMIT, DISTINCT or GROUP BY, or its key is not the id, and its ids are neither integers nor UUIDs, so they may " \
          "hold commas"
      end

      private

      def choose
        return to_one unless association.to_many?

        read_statement
        simple = @parent_column && association.owner_key == @id_column
        return :own_rows if @own_rows && simple && association.direct?
        return :grouped if groups? && !(simple && (@adapter.dialect.name == :postgres || (@whole && integers?)))

        :pairs if simple
      end

      def write
        case kind
        when :foreign_key then @expressions = [Association::Correlated.column(@adapter.types.qualified(association.owner_key))]
        when :one then @expressions = [one]
        when :grouped then @expressions = [Association::Correlated.new(association.owner_key, @adapter.dialect.group(ids_sql))]
        when :pairs then write_pairs
        when :own_rows then @own_rows_sql = among(@statement)
        end
      end

      def write_pairs
        @pairs_sql = among(listing("#{@parent_column}, #{@related}"))
        return unless integers?

        columns = "#{@parent_column} AS castellan_parent, #{@related} AS castellan_related"
        dialect = association.adapter.dialect
        @lists_sql = dialect.lists(among(listing(columns)))
        return unless (dialect.overlaps? || @whole) && association.adapter.same_database?(@adapter)

        @whole_sql = dialect.lists(Association::OwnerKey.replace_comparison(listing(columns)) { |column| dialect.present(column) })
      end

      def integers?
        @adapter.types.integer?(@id_column) && association.adapter.types.integer?(@related_id)
      end

      def to_one
        return :foreign_key if association.foreign_key_of?(@related_id)

        :one if association.adapter.same_database?(@adapter)
      end

      def one = Association::Correlated.new(association.owner_key, "(#{@lazy.sql(@related, single: true)})")

      # Generated once, because generating it is slow for scopes that are evaluated in each request.
      def read_statement
        return unless @lazy.plain?

        @statement = @lazy.sql(LIST)
        @parent_column = Association::OwnerKey.column(@statement) if association.of_keys?
      end

      def listing(list) = @statement.sub(LIST) { list }

      def groups?
        target = association.adapter
        target.same_database?(@adapter) && (target.types.integer?(@related_id) || target.types.database_type(@related_id) == "uuid")
      end

      def ids_sql
        return listing("#{@related} AS castellan_id") if @statement

        "SELECT #{association.adapter.types.quote(@related_id)} AS castellan_id FROM (#{@lazy.whole_sql}) castellan_related"
      end

      def among(sql)
        Association::OwnerKey.replace_comparison(sql) { |column| association.adapter.dialect.among(column, @adapter.types.database_type(@id_column)) }
      end

      # Reads the links of a polymorphic belongs_to from the type and id columns in the row. Frozen.
      #
      #   link = Polymorphic.new(edge, adapter)
      #   link.expressions         # => [type, id], which the row's SELECT must contain
      #   link.kind_of("User")     # => 0, the position in relationship.definitions
      #
      # For a type with a default scope or a resource scope, a query finds the ids of the visible records.
      class Polymorphic
        # @return [Plan::Node::Edge]
        # @return [Object] the association
        attr_reader :edge, :association, :expressions

        def initialize(edge, adapter)
          @edge = edge
          @adapter = adapter
          @association = adapter.association(edge.relationship.association_name)
          columns = [association.type_column, association.owner_key]
          @expressions = columns.map { |column| Association::Correlated.column(adapter.types.qualified(column)) }
          @kinds = edge.relationship.kinds.map { |kind| association.type_name(kind) }.freeze
          freeze
        end

        def kind = :polymorphic

        # @return [Boolean] whether the links need their own SELECT
        def select? = false

        # @return [Boolean] whether the link is the same in every request
        def kept?(_now) = edge.relationship.definitions.none? { |definition| scoped?(definition) }

        # @param parents [Array<Object>] the parents' ids
        # @param types [Array<String, nil>] one for each parent
        # @param ids [Array<Object, nil>] one for each parent
        # @return [Array<Array(Object, Object, Integer)>] parent id, related id and type position
        # @raise [ConfigurationError] for a type without a resource
        def rows(parents, types, ids, scopes)
          found = parents.zip(ids, types).filter_map { |parent, id, type| [parent, id, kind_of(type)] if type && id }
          found.group_by(&:last).each { |kind, rows| hide(rows, kind, found, scopes) }
          found
        end

        private

        def kind_of(type)
          @kinds.index(type) or raise ConfigurationError, "#{edge.relationship.name}: no resource is declared for records of " \
                                                          "#{type.inspect}; name it in resource: (#{edge.relationship.location})"
        end

        def scoped?(definition) = @adapter.related(definition.model).scopes.hide_rows?

        def hide(rows, kind, found, scopes)
          definition = edge.relationship.definitions[kind]
          return unless scoped?(definition) || scopes.of(definition, @adapter)

          related = @adapter.related(definition.model)
          chosen = related.scopes.by_ids(scopes.narrow(definition, related), rows.map { |row| row[1] }.uniq, definition.id_column)
          there = related.scopes.ids(chosen, definition.id_column).to_h { |id| [id, true] }
          found.reject! { |row| row.last == kind && !there[row[1].to_s] }
        end
      end

      # Links each row of a resource with `types` to itself, as the type in its column. Frozen.
      #
      #   link = OfTypes.new(edge, adapter)
      #   link.rows(["1"], ["Car"], ["1"], scopes)   # => [["1", "1", 0]]
      class OfTypes < Polymorphic
        def initialize(edge, adapter)
          @edge = edge
          @kinds = Inheritance.new(edge.relationship, adapter)
          id = edge.relationship.owner.definition.id_column
          @expressions = [@kinds.column, id].map { |column| Association::Correlated.column(adapter.types.qualified(column)) }
          freeze
        end

        def kept?(_now) = true

        # @param types [Array<Object, nil>] the type column's value for each id
        # @return [Array<Array(Object, Object, Integer)>] id, id and type
        #   position, without rows of no known type
        def rows(ids, types, _ids, _scopes)
          known = Hash.new { |found, type| found[type] = @kinds.position(type) }
          ids.zip(types).filter_map { |id, type| (kind = known[type]) && [id, id, kind] }
        end
      end
    end
  end
end
