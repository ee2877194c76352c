# frozen_string_literal: true

module Castellan
  module Detect
    # What a fingerprint says about its statement: which table, which columns must be equal to something, whether it
    # reads a batch. Frozen, and kept for each fingerprint that was asked for lately.
    #
    #   shape = Shape.of("select posts.* from posts where posts.user_id = ? order by posts.id desc limit ?", "Post Load")
    #   shape.table     # => "posts"
    #   shape.equal     # => ["user_id"]
    #   shape.last?     # => true
    #
    # Reads fingerprints, not SQL: subqueries and unions are not taken apart. What it does not understand is a read of
    # an unknown table, which is still counted.
    class Shape
      KEPT = 2_000 # of one name
      NAMES = 500
      EQUAL = /(?:\b(\w+)\.)?\b(\w+)\)? = \(?\?/
      PAGED = /(?:\b\w+\.)?\b(\w+)\)? (?:>|>=|<|<=) \(?\?.* order by (?:\w+\.)?\1\b.* limit \?/
      PAGED_BY_SEVERAL = /\((?:\w+\.)?(\w+)(?:, (?:\w+\.)?\w+)+\) (?:>|>=|<|<=) \(\?.* order by (?:\w+\.)?\1\b.* limit \?/
      NUMBERED = /(?:\b\w+\.)?\b(\w+)\)? (?:>|>=) \(?\?.*\b\1\)? (?:<|<=) \(?\?|\bbetween \? and \?/
      LIMITED = / where \(?(?:\w+\.)?\w+\)? in \(select [^()]* limit \?\)/
      LIST = /\b(\w+)\)? (?:in|= ?any) ?\(\?\)/
      COMPARISON = /[=<>]|\b(?:like|ilike|is|in|not|between|or|exists)\b/
      CONDITION = /(?:=|<|>|\blike|\bin|\bany|\bbetween) \(?\?/
      # A sign may stand without space; an arrow or a cast is none.
      SIGN = /(?<=[\w)]) ?(=|<>|!=|>=|<=|>|<) ?(?=[\w(?])/
      # No work that could be done at once, or none at all: cursors, locks, sequences, settings, what was written last.
      NOT_REPEATABLE = /\A(?:fetch|move|declare|close|copy|listen|unlisten|notify|lock|prepare|deallocate|attach|detach|use|kill)\b|
                        \Aselect\ (?:pg_(?!sleep\b)\w+|set_config|nextval|currval|setval|lastval|last_insert_rowid|last_insert_id|changes|
                        get_lock|release_lock)\s?\(/x
      # After it the same statement is about other rows: another schema, database or role, or a setting that policies read.
      SWITCH = /\A(?:set (?:session |local )?(?:search_path|schema|role|session authorization|\w+\.\w+)\b|use \w|select set_config\s?\()/
      # Answers that may be others although nothing was written.
      VOLATILE = /\b(?:random|rand|now|clock_timestamp|statement_timestamp|uuid|gen_random_uuid|newid|randomblob)\s?\(|
                  \bcurrent_(?:timestamp|time|date)\b|\bfor\ (?:no\ key\ )?(?:update|share)\b/x
      # A cursor is read a page at a time; what it is declared for is asked once.
      CURSOR = /\Adeclare \w+ .*?\bcursor\b.*? for (?=\(*(?:select|with|values)\b)/
      @shapes = {}

      # @param fingerprint [String] see {Fingerprint.of}
      # @param name [String, nil] what the ORM calls the statement
      # @return [Shape, nil] nil for what is no work of the application: transactions, the schema, the connection
      def self.of(fingerprint, name = nil)
        fingerprint = fingerprint.sub(CURSOR, "") if fingerprint.start_with?("declare ")
        named = @shapes[name] || remember(name)
        named.fetch(fingerprint) do
          named = remember(name) if named.size >= KEPT
          named[fingerprint] = counted?(fingerprint, name) ? new(fingerprint, name) : nil
        end
      end

      # @return [Boolean] whether what is asked from now on is answered from another schema or by another role
      def self.switches?(fingerprint) = fingerprint.match?(SWITCH)

      # By the statement's name first: two models, or two ORMs, may send the same text.
      def self.remember(name)
        @shapes = {} if @shapes.size >= NAMES
        @shapes[name] = {}
      end
      private_class_method :remember

      def self.counted?(fingerprint, name)
        Instrument::Counter.work?(fingerprint, name) && !fingerprint.match?(NOT_REPEATABLE)
      end
      private_class_method :counted?

      # @return [String]
      attr_reader :fingerprint, :verb
      # @return [Integer] which of the databases that the application asks without ActiveRecord
      attr_reader :database
      # @return [String] what statements are counted together by: the fingerprint, and the database
      attr_reader :key
      # @return [String, nil] the first table it reads, or the one it writes; without a schema
      attr_reader :table
      # @return [Array<String>] columns of that table that must equal a value
      attr_reader :equal
      # @return [Array<String>] every table named
      attr_reader :tables

      def initialize(fingerprint, name = nil)
        @fingerprint = fingerprint
        @text = fingerprint.gsub(SIGN, ' \1 ').freeze
        @database = Instrument::Databases.number(name)
        @key = @database == 1 ? fingerprint : "#{fingerprint} (#{@database})".freeze
        @sequel = Instrument::Databases.of?(Instrument::SequelInstrument::NAME, name)
        @model = name[/\A[A-Z]\S*(?= )/] if !@sequel && @database == 1 && name.is_a?(String)
        @verb = fingerprint[/\A\(*(\w+)/, 1]
        @tables = Instrument::Counter.tables(fingerprint).map { |table| table[/\w+\z/] }.uniq.freeze
        @table = @tables.first
        @equals = equal_columns.freeze
        @equal = equal_in(@table).freeze
        @write = %w[insert update delete merge].include?(@verb)
        @listed = @text.match?(/(?:\bin|= ?any) ?\(\?\)/)
        @batch = !@write && piecewise?
        @pieces = @write ? limited? || @equal.size > 1 : @batch || @text.scan(CONDITION).size > 1 || @text.match?(/ [<>]=? \(?\?/)
        freeze
      end

      # @return [Boolean]
      def write? = @write

      # @return [String, nil] the model that ActiveRecord names with the statement ("Post Load")
      attr_reader :model

      # @return [Array<Class>] the models of the table: first the one that the statement names, then one that is named after the table
      def models
        found = library.of_table(table)
        found.each_with_index.sort_by { |one, place| [one.name == model ? 0 : 1, Words.table?(one, table) ? 0 : 1, place] }.map(&:first)
      end

      # @return [Boolean] whether Sequel sent it, so that its models are meant where ActiveRecord has some of the same table
      def sequel? = @sequel

      # @return [Module] who knows the models that are meant
      def library = sequel? ? SequelModels : ActiveRecordModels

      # @return [Boolean] whether it may be one of the statements that fetch a large set piece by piece: by key, by range,
      #   by page, or by a list of keys. {Pieces} knows whether it is.
      def batch? = @batch

      # @return [Boolean] whether a look at what changes from one statement to the next can tell more
      def pieces? = @pieces

      # @return [Boolean] whether it loads associations by a JOIN: so ActiveRecord calls the first column of such a statement
      def joins? = fingerprint.include?(" as t0_r0")

      # @return [Boolean] whether it asks for the next rows of an order
      def paged? = @text.match?(PAGED) || @text.match?(PAGED_BY_SEVERAL) || @text.match?(/ offset \?/)

      # @return [Boolean] whether it locks the rows that it reads
      def locks? = fingerprint.match?(/\bfor (?:no key )?(?:update|share)\b/)

      # @return [String, nil] what an INSERT does with a row that is there: "nothing", "ignore", "replace" or "update"
      def conflict
        fingerprint[/\Ainsert or (\w+)/, 1] || fingerprint[/\bon (?:conflict|duplicate key)\b.*?\b(nothing|update)\b/, 1]
      end

      # @return [Array<String>] the columns by which an INSERT knows such a row
      def conflict_columns = fingerprint[/\bon conflict \(([\w, ]+)\)/, 1].to_s.split(", ")

      # @return [Boolean] whether it has conditions that are no equations
      def compares? = chosen.gsub(EQUAL, "").match?(COMPARISON)

      # @return [Boolean] whether it chooses by the values of this column alone
      def only_by?(column)
        rest = chosen.gsub(/(?:\b\w+\.)?\b#{column}\)? (?:= \(?\?|in \(\?\))/, "")
        rest != chosen && !rest.match?(COMPARISON)
      end

      # @param table [String]
      # @return [Array<String>] columns of this table, or of no named one, that must equal a value
      def equal_in(table) = @equals.filter_map { |of, column| column if of.nil? || of == table }

      # @return [Array<String>] all conditions, those of its own table without the table's name
      def conditions = Conditions.all(@text).map { |one| own(one) }

      # @return [String, nil] the columns that it is sorted by, as they are written
      def sorted_by
        order = @text[/ order by ((?:(?! limit | offset | for (?:update|share)).)*)/m, 1]
        order && own(order).gsub(/ asc\b/, "").strip
      end

      # @return [Boolean] whether it asks for a list of values
      def listed? = @listed

      # @return [String, nil] the column that must be one of a list
      def list_column = @text[LIST, 1]

      # @return [Boolean] whether it asks for what lies between two values
      def ranged? = @text.match?(NUMBERED)

      # @return [Boolean] whether it writes many rows at once
      def bulk? = write? && (listed? || ranged?) && !equal.include?("id")

      # @return [Boolean] whether it writes some of the rows that it chooses, so that it is sent until none is left
      def limited? = write? && @text.match?(LIMITED)

      # @return [Boolean] whether it inserts what a SELECT gives
      def copies? = verb == "insert" && @text.match?(/\A[^?]*\bselect /)

      # @return [Boolean] whether the same statement may have another answer, although nothing was written
      def volatile? = table.nil? || fingerprint.match?(VOLATILE)

      # @return [Boolean] whether it counts, sums or the like
      def calculation? = fingerprint.match?(/\Aselect (?:count|sum|avg|min|max)\(/)

      # @return [Boolean] whether it only asks if there is one
      def existence? = fingerprint.match?(/\Aselect (?:\? as (?:one|\?)|exists)\b?/)

      # @return [Boolean] whether one record is wanted of many
      def single? = fingerprint.match?(/ limit \?(?: |\z)/)

      # @return [Boolean] whether it is the last of an order
      def last? = single? && fingerprint.match?(/ order by .*\bdesc\b/)

      # @return [String, nil] the columns of the order, as `id: :desc`
      def order
        order = fingerprint[/ order by ((?:(?:\w+\.)?\w+(?: asc| desc)?(?:, )?)+)/, 1] or return

        columns = order.split(",").map(&:strip)
        columns.map { |column| "#{column[/(\w+)(?: asc| desc)?\z/, 1]}: :#{column.end_with?(" desc") ? "desc" : "asc"}" }.join(", ")
      end

      private

      def own(text) = text.gsub(/(?<!\w|\.)#{table}\.(?=\w)/, "")

      def chosen = @text[/ where (.*?)(?: (?:group|order) by .*| limit \?.*)?\z/m, 1].to_s

      def piecewise? = @listed || paged? || ranged?

      # Only of the part that chooses: what an UPDATE sets is no condition. Alternatives need not be met.
      def equal_columns
        Conditions.all(@text).grep_v(/\bor\b/).filter_map { |one| one.match(EQUAL)&.captures }
      end
    end
  end
end
