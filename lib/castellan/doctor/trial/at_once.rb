# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Answers the look-ups of a loop from one statement, as the code does that a finding suggests: `where(id: values).index_by(&:id)`, a
      # grouped count. The values are those that the run before asked for. Of a duplicate the first answer is kept.
      #
      #   at_once = AtOnce.new(finding, notes.of(finding))
      #   at_once.answer("SELECT tags.* FROM tags WHERE tags.name = 'a' LIMIT 1") do |sql|
      #     …   # sends "SELECT tags.name AS castellan_key, tags.* FROM tags WHERE tags.name IN ('a', 'b')", gives [key, row] of each
      #   end   # => the rows of 'a', or nil: ask the database
      #
      # Statements are rewritten as text, and only those of the shape that the suggestion is for: what is not understood is asked as before,
      # and the trial finds no fewer queries. For one run of the work; {reset} before the next.
      class AtOnce
        # Hears which statements are asked for in a run, with their values.
        class Notes
          MOST = 5_000

          # @param findings [Array<Finding>]
          def initialize(findings)
            @statements = findings.to_h { |finding| [finding.fingerprint, []] }
            @texts = {}
          end

          # Told by {Recording#query}.
          def query(sql, _name, _started_ns, _duration_ns, _cached, _rows, binds = nil)
            known = @texts.fetch(sql) { @texts[sql] = @statements[Fingerprint.of(sql)] }
            known << [sql, binds] if known && known.size < MOST
          end

          # @return [Array<Array(String, Array)>] texts and their values
          def of(finding) = @statements.fetch(finding.fingerprint, [])
        end

        KEY = "castellan_key"
        VALUE = /'(?:[^']|'')*'|-?\d[\d.]*|\btrue\b|\bfalse\b/i
        PLACEHOLDER = /'(?:[^']|'')*'|"[^"]*"|\$(\d+)|\?/
        COMMENT = %r{'(?:[^']|'')*'|"[^"]*"|(\s*/\*.*?\*/|\s*--[^\n]*)}m
        LIMIT_ONE = /\s+LIMIT 1\s*\z/i
        CALCULATION = /\Aselect (count|sum|avg|min|max)\(/
        private_constant :VALUE, :PLACEHOLDER, :COMMENT, :LIMIT_ONE, :CALCULATION

        # @param finding [Finding]
        # @return [Boolean] whether its fix can be tried like that
        def self.for?(finding) = finding.remedy.to_h.key?(:together)

        # A statement with its values in the place of the placeholders.
        # @yield [value] gives it as it is written in SQL
        # @return [String]
        def self.literal(sql, binds)
          return sql if binds.nil? || binds.empty?

          place = -1
          sql.gsub(PLACEHOLDER) do |found|
            number = Regexp.last_match(1)
            next found if number.nil? && found != "?"

            yield binds[number ? Integer(number) - 1 : place += 1]
          end
        end

        # What the hooks of a library keep for the answers: the names of what was selected, as strings where a row is an array and as
        # symbols where it is a hash.
        attr_accessor :columns, :types

        # @return [String] the column whose values are asked for
        attr_reader :column

        # @param finding [Finding]
        # @param statements [Array] see {Notes#of}
        def initialize(finding, statements)
          @finding = finding
          @statements = statements
          @texts = {}
          @column = finding.remedy[:together]
          @condition = /((?:["`]?\w+["`]?\.)?["`]?\b#{Regexp.escape(@column)}\b["`]?)\s*=\s*(#{VALUE})/i if @column
          reset
        end

        # @return [void]
        def reset
          @found = {}
          @chained = @answered = false
          @kept = {}
        end

        # @param location [String, nil] where the work is
        # @return [Boolean] whether this is one of its statements
        def here?(sql, location)
          return false unless @texts.fetch(sql) { @texts[sql] = Fingerprint.of(sql) == @finding.fingerprint }

          @column.nil? || @finding.location.nil? || @finding.location == location
        end

        # @return [Class] whose records are asked for
        def model = Object.const_get(@finding.remedy[:of])

        # @return what the block gave for the same text before
        def keep(text)
          @answered = true
          @kept.fetch(text) { @kept[text] = yield }
        end

        # @return [Boolean] whether any statement was answered: some are sent in ways that nothing can answer in their place
        def answered? = @answered

        # Whether each value stood in the answer to the one before, as when one goes from record to record: then they cannot be collected.
        # @return [Boolean]
        def chained? = @chained

        # @param text [String] without placeholders
        # @param literal [#call] gives text and values as one
        # @yield [String] the statement for all values
        # @return [Array, nil]
        def answer(text, literal, &ask)
          text = bare(text)
          value = text[@condition, 2] or return
          found = @found[apart(text)] ||= look_up(text, literal, &ask)
          @answered = true
          return if chained?

          rows = found.fetch(value) { missing }
          text.match?(LIMIT_ONE) ? rows.first(1) : rows
        end

        private

        # A comment at the end stands behind what is rewritten there.
        def bare(text) = text.gsub(COMMENT) { |part| Regexp.last_match(1) ? "" : part }

        def look_up(text, literal)
          texts = @statements.map { |sql, binds| bare(literal.call(sql, binds)) }.select { |one| apart(one) == apart(text) }
          values = [*texts, text].filter_map { |one| one[@condition, 2] }.uniq
          found = yield(bulk(text, values)).group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
          steps = values.each_cons(2)
          @chained ||= chains?(found, steps)
          found
        end

        # The keys of records that were loaded together are there before the loop.
        def chains?(found, steps)
          @finding.parent_location.nil? && steps.any? && steps.all? { |one, following| holds?(found[one], following.delete("'")) }
        end

        # What else a statement asks for.
        def apart(text) = text.gsub(equation(text), "")

        # The condition, with its value, wherever it stands.
        def equation(text) = /#{Regexp.escape(text[@condition].to_s)}(?![\w.])/

        # One who goes from record to record is answered with one.
        def holds?(rows, value)
          rows&.one? && (rows.first.is_a?(Hash) ? rows.first.values : rows.first).any? { |cell| cell.to_s == value }
        end

        def bulk(text, values)
          column = text[@condition, 1]
          sql = text.sub(LIMIT_ONE, "").gsub(equation(text)) { "#{column} IN (#{values.join(", ")})" }
          sql = sql.sub(/\ASELECT /i) { "SELECT #{column} AS #{KEY}, " }
          calculation ? "#{sql} GROUP BY #{column}" : sql
        end

        def calculation = @finding.fingerprint[CALCULATION, 1]

        # Of what is not there a calculation has an answer all the same.
        def missing
          return [] unless calculation

          nothing = calculation == "count" ? 0 : nil
          [columns.first.is_a?(Symbol) ? columns.to_h { |name| [name, nothing] } : columns.map { nothing }]
        end
      end
    end
  end
end
