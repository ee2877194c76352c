# frozen_string_literal: true

module Castellan
  module Detect
    # Parses a fingerprint: table, columns compared with a value, kind of statement. Frozen and cached per
    # fingerprint.
    #
    #   shape = Shape.of("select posts.* from posts where posts.user_id = ? order by posts.id desc limit ?", "Post Load")
    #   shape.table     # => "posts"
    #   shape.equal     # => ["user_id"]
    #   shape.last?     # => true
    #
    # Parses fingerprints with regular expressions and does not split subqueries and unions. A statement that
    # it cannot parse counts as a read of an unknown table.
    class Shape
      NAMES = 500
      KEPT = 2_000 # per statement name
      NOT_COUNTED = :not_counted
      EQUAL = /(?:\b(\w+)\.)?\b(\w+)\)? = \(?\?/
      PAGED = /\b(\w+)\)? (?:>|>=|<|<=) \(?\?.* order by (?:\w+\.)?\1\b.* limit \?/
      PAGED_BY_SEVERAL = /\((?:\w+\.)?(\w+)(?:, (?:\w+\.)?\w+)+\) (?:>|>=|<|<=) \(\?.* order by (?:\w+\.)?\1\b.* limit \?/
      NUMBERED = /\b(\w+)\)? (?:>|>=) \(?\?.*\b\1\)? (?:<|<=) \(?\?|\bbetween \? and \?/
      LIMITED = / where \(?(?:\w+\.)?\w+\)? in \(select [^()]* limit \?\)/
      LIST = /\b(\w+)\)? (?:in|= ?any) ?\(\?\)/
      LISTED = /(?:\bin|= ?any) ?\(\?\)/
      COMPARISON = /[=<>]|\b(?:like|ilike|is|in|not|between|or|exists)\b/
      CONDITION = /(?:=|<|>|\blike|\bin|\bany|\bbetween) \(?\?/
      # An operator may have no spaces around it; `->` and `::` are not operators here.
      SIGN = /(?<=[\w)]) ?(=|<>|!=|>=|<=|>|<) ?(?=[\w(?])/
      # Statements that cannot be merged or are no work: cursors, locks, sequences, settings, the last
      # inserted id.
      NOT_REPEATABLE = /\A(?:fetch|move|declare|close|copy|listen|unlisten|notify|lock|prepare|deallocate|attach|detach|use|kill)\b|
                        \Aselect\ (?:pg_(?!sleep\b)\w+|set_config|nextval|currval|setval|lastval|last_insert_rowid|last_insert_id|changes|
                        get_lock|release_lock)\s?\(/x
      # Statements that switch schema, database, role or a setting that row-level policies read; the same
      # query then reads other rows.
      SWITCH = /\A(?:set (?:session |local )?(?:search_path|schema|role|session authorization|\w+\.\w+)\b|use \w|select set_config\s?\()/
      # Functions and locks whose result may change without a write.
      VOLATILE = /\b(?:random|rand|now|clock_timestamp|statement_timestamp|uuid|gen_random_uuid|newid|randomblob)\s?\(|
                  \bcurrent_(?:timestamp|time|date)\b|\bfor\ (?:no\ key\ )?(?:update|share)\b/x
      # Reads of a cursor are paged, so only the query of its declaration counts.
      CURSOR = /\Adeclare \w+ .*?\bcursor\b.*? for (?=\(*(?:select|with|values)\b)/
      SEQUEL = /\A#{Instrument::SequelInstrument::NAME}(?: \d+)?\z/
      @shapes = BoundedCache.new(limit: NAMES)

      class << self
        # @param fingerprint [String] see {Fingerprint.of}
        # @param name [String, nil] the ORM's name of the statement, e.g. "Post Load"
        # @return [Shape, nil] nil for transactions, schema queries and connection commands
        def of(fingerprint, name = nil)
          fingerprint = fingerprint.sub(CURSOR, "") if fingerprint.start_with?("declare ")
          # Two models, or two ORMs, may send the same SQL. A key of both would be an object per statement.
          named = @shapes.fetch(name) { BoundedCache.new(limit: KEPT) }
          shape = named.fetch(fingerprint) { counted?(fingerprint, name) ? new(fingerprint, name) : NOT_COUNTED }
          shape unless NOT_COUNTED.equal?(shape)
        end

        # @return [Boolean] whether later queries read another schema or run as another role
        def switches?(fingerprint) = fingerprint.match?(SWITCH)

        private

        def counted?(fingerprint, name) = Instrument::Counter.work?(fingerprint, name) && !fingerprint.match?(NOT_REPEATABLE)
      end

      # - `key` groups statements: the fingerprint and, for databases used without ActiveRecord, their number
      # - `tables`, without schemas; `table` is the first one that it reads, or the one that it writes
      # - `equal` are the columns of that table that are compared with a value by =
      # - `model` is the one in ActiveRecord's name of the statement ("Post Load")
      attr_reader :fingerprint, :verb, :database, :key, :table, :equal, :tables, :model

      def initialize(fingerprint, name = nil)
        @fingerprint = fingerprint
        @text = fingerprint.gsub(SIGN, ' \1 ').freeze
        @database = Instrument::Databases.number(name)
        @key = @database == 1 ? fingerprint : "#{fingerprint} (#{@database})".freeze
        @sequel = name.to_s.match?(SEQUEL)
        @model = name[/\A[A-Z]\S*(?= )/] if !@sequel && @database == 1 && name.is_a?(String)
        @verb = fingerprint[/\A\(*(\w+)/, 1]
        @tables = Instrument::Counter.tables(fingerprint).map { |table| table[/\w+\z/] }.uniq.freeze
        @table = @tables.first
        @equals = equal_columns.freeze
        @equal = equal_in(@table).freeze
        @write = %w[insert update delete merge].include?(@verb)
        @listed = @text.match?(LISTED)
        @batch = !@write && (@listed || paged? || ranged?)
        @pieces = @write ? limited? || @equal.size > 1 : @batch || @text.scan(CONDITION).size > 1 || @text.match?(/ [<>]=? \(?\?/)
        freeze
      end

      def write? = @write

      # @return [Array<Class>] the models of the table: first the statement's own, then one with the name of
      #   the table; of Sequel's only those of the statement's database, where it has any
      def models
        found = library.of_table(table, database)
        found.each_with_index.sort_by { |one, place| [one.name == model ? 0 : 1, Words.table?(one, table) ? 0 : 1, place] }.map(&:first)
      end

      # @return [Class, nil] the model of the table that the line names, with or without its modules; else the first
      def model_at(site)
        constants = Source.at(site).constants
        all = models
        all.find { |one| constants.any? { |name| "::#{one.name}".end_with?("::#{name}") } } || all.first
      end

      # Both ORMs may have models of the same table.
      def sequel? = @sequel

      # @return [Module] {SequelModels} or {ActiveRecordModels}
      def library = sequel? ? SequelModels : ActiveRecordModels

      # Whether it may be one of several batch reads of a large set: by key, range, page or list of keys. {Pieces} decides.
      def batch? = @batch

      # Whether the values of the statements should be compared, see {Pieces}.
      def pieces? = @pieces

      # Whether it is an eager load by JOIN; ActiveRecord names its first column t0_r0.
      def joins? = fingerprint.include?(" as t0_r0")

      # Whether it reads a page of an ordered set.
      def paged? = @text.match?(PAGED) || @text.match?(PAGED_BY_SEVERAL) || @text.match?(/ offset \?/)

      # Whether it locks the rows that it reads.
      def locks? = fingerprint.match?(/\bfor (?:no key )?(?:update|share)\b/)

      # Whether an INSERT has a conflict clause.
      def conflict? = fingerprint.match?(/\Ainsert (?:or|ignore) |\bon (?:conflict|duplicate key)\b/)

      # Whether it reads plain columns, as opposed to expressions and distinct values.
      def columns? = fingerprint.match?(/\Aselect (?:\w+\.)?[\w*]+(?:, (?:\w+\.)?[\w*]+)* from /) && !fingerprint.include?(" group by ")

      # Whether it has conditions other than equality.
      def compares? = chosen.gsub(EQUAL, "").match?(COMPARISON)

      # Whether this column is its only condition.
      def only_by?(column)
        rest = chosen.gsub(/(?:\b\w+\.)?\b#{column}\)? (?:= \(?\?|in \(\?\))/, "")
        rest != chosen && !rest.match?(COMPARISON)
      end

      # @return [Array<String>] columns compared by =, either of this table or unqualified
      def equal_in(table) = @equals.filter_map { |of, column| column if of.nil? || of == table }

      # @return [Array<String>] all conditions; its own table's name is removed
      def conditions = Conditions.all(@text).map { |one| own(one) }

      # @return [String, nil] the ORDER BY clause without "asc"
      def sorted_by
        order = @text[/ order by ((?:(?! limit | offset | for (?:update|share)).)*)/m, 1]
        order && own(order).gsub(/ asc\b/, "").strip
      end

      # Whether it has an IN list.
      def listed? = @listed
      def list_column = @text[LIST, 1]

      # Whether it reads a range between two values.
      def ranged? = @text.match?(NUMBERED)

      # Whether it writes many rows at once.
      def bulk? = write? && (listed? || ranged?) && !equal.include?("id")

      # Whether it writes a limited number of the matching rows, so that it repeats until none is left.
      def limited? = write? && @text.match?(LIMITED)

      # Whether it is an INSERT … SELECT.
      def copies? = verb == "insert" && @text.match?(/\A[^?]*\bselect /)

      # Whether its result may change without a write.
      def volatile? = table.nil? || fingerprint.match?(VOLATILE)

      # Whether it calculates an aggregate.
      def calculation? = fingerprint.match?(/\Aselect (?:count|sum|avg|min|max)\(/)
      def existence? = fingerprint.match?(/\Aselect (?:\? as (?:one|\?)|exists)\b?/)

      # Whether it reads records.
      def records? = !write? && !calculation? && !existence?

      # Whether it has a LIMIT.
      def single? = fingerprint.match?(/ limit \?(?: |\z)/)

      # Whether it reads the last row of an order.
      def last? = single? && fingerprint.match?(/ order by .*\bdesc\b/)

      # @return [String, nil] the order as `id: :desc`
      def order
        order = fingerprint[/ order by ((?:(?:\w+\.)?\w+(?: asc| desc)?(?:, )?)+)/, 1] or return

        columns = order.split(",").map(&:strip)
        columns.map { |column| "#{column[/(\w+)(?: asc| desc)?\z/, 1]}: :#{column.end_with?(" desc") ? "desc" : "asc"}" }.join(", ")
      end

      private

      def own(text) = text.gsub(/(?<!\w|\.)#{table}\.(?=\w)/, "")

      def chosen = @text[/ where (.*?)(?: (?:group|order) by .*| limit \?.*)?\z/m, 1].to_s

      # Conditions joined by OR are excluded, because not all of them must hold.
      def equal_columns = Conditions.all(@text).grep_v(/\bor\b/).filter_map { |one| one.match(EQUAL)&.captures }
    end
  end
end
