# frozen_string_literal: true

module Castellan
  module Detect
    # Parses a fingerprint: its table, the columns that it compares with a value, and its kind.
    #
    #   shape = Shape.of("select posts.* from posts where posts.user_id = ? order by posts.id desc limit ?", "Post Load")
    #   shape.table     # => "posts"
    #   shape.equal     # => ["user_id"]
    #   shape.last?     # => true
    #
    # Frozen, and cached per fingerprint. Parses with regular expressions and does not split subqueries and
    # unions. A statement that it cannot parse counts as a read of an unknown table.
    class Shape
      NAMES = 500
      KEPT = 2_000 # for each statement name
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
      # An operator may have no spaces around it. `->` and `::` must not match.
      SIGN = /(?<=[\w)]) ?(=|<>|!=|>=|<=|>|<) ?(?=[\w(?])/
      # Statements that cannot be merged, or do no work: cursors, locks, sequences, settings, the last
      # inserted id.
      NOT_REPEATABLE = /\A(?:fetch|move|declare|close|copy|listen|unlisten|notify|lock|prepare|deallocate|attach|detach|use|kill)\b|
                        \Aselect\ (?:pg_(?!sleep\b)\w+|set_config|nextval|currval|setval|lastval|last_insert_rowid|last_insert_id|changes|
                        get_lock|release_lock)\s?\(/x
      # Statements that switch the schema, database, role, or a setting that row-level policies read. After
      # one, the same query reads other rows.
      SWITCH = /\A(?:set (?:session |local )?(?:search_path|schema|role|session authorization|\w+\.\w+)\b|use \w|select set_config\s?\()/
      # Functions and locks that may return another result without a write in between.
      VOLATILE = /\b(?:random|rand|now|clock_timestamp|statement_timestamp|uuid|gen_random_uuid|newid|randomblob)\s?\(|
                  \bcurrent_(?:timestamp|time|date)\b|\bfor\ (?:no\ key\ )?(?:update|share)\b/x
      # The reads of a cursor are paged, so only the query in its declaration counts.
      CURSOR = /\Adeclare \w+ .*?\bcursor\b.*? for (?=\(*(?:select|with|values)\b)/
      SEQUEL = /\A#{Instrument::SequelInstrument::NAME}(?: \d+)?\z/
      @shapes = BoundedCache.new(limit: NAMES)

      class << self
        # @param fingerprint [String] see {Fingerprint.of}
        # @param name [String, nil] the ORM's name for the statement, e.g. "Post Load"
        # @return [Shape, nil] nil for transactions, schema queries and connection commands
        def of(fingerprint, name = nil)
          fingerprint = fingerprint.sub(CURSOR, "") if fingerprint.start_with?("declare ")
          # Two models, or two ORMs, may send the same SQL. The caches are nested because a key of both would
          # be an object per statement.
          named = @shapes.fetch(name) { BoundedCache.new(limit: KEPT) }
          shape = named.fetch(fingerprint) { counted?(fingerprint, name) ? new(fingerprint, name) : NOT_COUNTED }
          shape unless NOT_COUNTED.equal?(shape)
        end

        # @return [Boolean] whether later queries read another schema, or run as another role
        def switches?(fingerprint) = fingerprint.match?(SWITCH)

        private

        def counted?(fingerprint, name) = Instrument::Counter.work?(fingerprint, name) && !fingerprint.match?(NOT_REPEATABLE)
      end

      # - `key`: groups statements; the fingerprint and, for databases used without ActiveRecord, their number
      # - `tables`: without schemas; `table` is the first one read, or the one written
      # - `equal`: the columns of `table` that are compared with a value by =
      # - `model`: the model in ActiveRecord's name for the statement ("Post Load")
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

      # @return [Array<Class>] the models of the table: first the statement's own, then one named after the
      #   table; for Sequel only those of the statement's database, if there are any
      def models
        found = library.of_table(table, database)
        found.each_with_index.sort_by { |one, place| [one.name == model ? 0 : 1, Words.table?(one, table) ? 0 : 1, place] }.map(&:first)
      end

      # @return [Class, nil] the model of the table that the line names, with or without its modules; else the
      #   first one
      def model_at(site)
        constants = Source.at(site).constants
        all = models
        all.find { |one| constants.any? { |name| "::#{one.name}".end_with?("::#{name}") } } || all.first
      end

      # Needed because both ORMs may have models of the same table.
      def sequel? = @sequel

      # @return [Module]
      def library = sequel? ? SequelModels : ActiveRecordModels

      # Whether it may be a batch read of a large set: by key, range, page or list of keys. {Pieces} decides.
      def batch? = @batch

      # Whether to compare the values of the statements, see {Pieces}.
      def pieces? = @pieces

      # Whether it is an eager load by JOIN, in which ActiveRecord names the first column t0_r0.
      def joins? = fingerprint.include?(" as t0_r0")

      def paged? = @text.match?(PAGED) || @text.match?(PAGED_BY_SEVERAL) || @text.match?(/ offset \?/)

      def locks? = fingerprint.match?(/\bfor (?:no key )?(?:update|share)\b/)

      def conflict? = fingerprint.match?(/\Ainsert (?:or|ignore) |\bon (?:conflict|duplicate key)\b/)

      # Whether it reads plain columns: no expressions, no distinct values.
      def columns? = fingerprint.match?(/\Aselect (?:\w+\.)?[\w*]+(?:, (?:\w+\.)?[\w*]+)* from /) && !grouped?

      def grouped? = fingerprint.include?(" group by ")

      def compares? = chosen.gsub(EQUAL, "").match?(COMPARISON)

      def only_by?(column)
        rest = chosen.gsub(/(?:\b\w+\.)?\b#{column}\)? (?:= \(?\?|in \(\?\))/, "")
        rest != chosen && !rest.match?(COMPARISON)
      end

      # @return [Array<String>] columns compared by =, of this table or without a table
      def equal_in(table) = @equals.filter_map { |of, column| column if of.nil? || of == table }

      # @return [Array<String>] all conditions, without the name of the statement's own table
      def conditions = Conditions.all(@text).map { |one| own(one) }

      def sorted_by
        order = @text[/ order by ((?:(?! limit | offset | for (?:update|share)).)*)/m, 1]
        order && own(order).gsub(/ asc\b/, "").strip.split(", ").uniq { |column| column[/\A\S+/] }.join(", ")
      end

      def listed? = @listed
      def list_column = @text[LIST, 1]

      def ranged? = @text.match?(NUMBERED)

      def bulk? = write? && (listed? || ranged?) && !equal.include?("id")

      # Whether it writes a limited number of the matching rows: it then repeats until none is left.
      def limited? = write? && @text.match?(LIMITED)

      def copies? = verb == "insert" && @text.match?(/\A[^?]*\bselect /)

      def volatile? = table.nil? || fingerprint.match?(VOLATILE)

      def calculation? = fingerprint.match?(/\Aselect (?:count|sum|avg|min|max)\(/)
      def existence? = fingerprint.match?(/\Aselect (?:\? as (?:one|\?)|exists)\b?/)

      def records? = !write? && !calculation? && !existence?

      def single? = fingerprint.match?(/ limit \?(?: |\z)/)

      def last? = single? && fingerprint.match?(/ order by .*\bdesc\b/)

      # @return [String, nil] the ORDER BY clause as `id: :desc`, each column once: a default scope and a call may both name it
      def order
        order = fingerprint[/ order by ((?:(?:\w+\.)?\w+(?: asc| desc)?(?:, )?)+)/, 1] or return

        columns = order.split(",").map(&:strip)
        columns = columns.map { |column| [column[/(\w+)(?: asc| desc)?\z/, 1], column.end_with?(" desc") ? "desc" : "asc"] }
        columns.uniq(&:first).map { |name, way| "#{name}: :#{way}" }.join(", ")
      end

      private

      def own(text) = text.gsub(/(?<!\w|\.)#{table}\.(?=\w)/, "")

      def chosen = @text[/ where (.*?)(?: (?:group|order) by .*| limit \?.*)?\z/m, 1].to_s

      # Conditions joined by OR do not count, because not all of them must hold.
      def equal_columns = Conditions.all(@text).grep_v(/\bor\b/).filter_map { |one| one.match(EQUAL)&.captures }
    end
  end
end
