# frozen_string_literal: true

require "bigdecimal"
require "date"
require "time"

module Castellan
  module Rows
    # Writes the SQL of a column that a client filters or sorts by, and of comparisons with it.
    #
    #   column = ComparedColumn.new(definition, adapter, definition.filters["created_at"], scopes)
    #   column.sql   # => "posts"."created_at", or a subquery of a path
    #   column.condition(:gte, ["2026-01-31"], "filter[created_at]")
    #   # => ("posts"."created_at" >= '2026-01-31 00:00:00')
    #
    # Strings that are not a value of the column's type raise {BadRequest}. The ORM quotes the values.
    class ComparedColumn
      Parameter = Plan::Parameter
      WHOLE = /\A[+-]?\d{1,19}\z/
      NUMBER = /\A[+-]?\d{1,100}(?:\.\d{1,100})?\z/
      FLOAT = /\A[+-]?\d{1,100}(?:\.\d{1,100})?(?:[eE][+-]?\d{1,3})?\z/
      DATE = /\A\d{4}-\d\d-\d\d\z/
      TIME = /\A\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?\z/
      YEARS = (1..9999)
      ESCAPED = /[!%_]/
      MOST_STARS = 5 # LIKE takes longer with each of them
      ORDERED = { gt: ">", gte: ">=", lt: "<", lte: "<=" }.freeze
      UNORDERED = %i[boolean uuid enum].freeze

      # A description of each kind for messages, and a parser that returns nil for invalid strings.
      KINDS = {
        integer: ["a whole number of at most 64 bits", ->(text) {
          text.to_i if WHOLE.match?(text) && text.to_i.bit_length < 64
        }],
        decimal: ["a number", ->(text) { BigDecimal(text) if NUMBER.match?(text) }],
        float: ["a number", ->(text) { ComparedColumn.float(text) }],
        boolean: ["true or false", ->(text) { text == "true" if %w[true false].include?(text) }],
        text: ["text", ->(text) { text }],
        uuid: ["a UUID", ->(text) { text if Ids::UUID.match?(text) }],
        date: ["a date such as 2026-01-31", ->(text) { ComparedColumn.date(text) }],
        datetime: ["a time such as 2026-01-31T12:00:00Z", ->(text) { ComparedColumn.time(text) }]
      }.freeze
      private_constant :Parameter, :WHOLE, :NUMBER, :FLOAT, :DATE, :TIME, :YEARS, :ESCAPED, :MOST_STARS, :ORDERED, :UNORDERED, :KINDS

      def self.date(text)
        date = Date.iso8601(text) if DATE.match?(text)
        date if date && YEARS.cover?(date.year)
      rescue Date::Error
        nil
      end

      # @return [Float, nil] parsed as BigDecimal, because String#to_f warns if a number is too large
      def self.float(text)
        number = BigDecimal(text).to_f if FLOAT.match?(text)
        number if number&.finite?
      end

      # @return [Time, nil] without an offset, the time is UTC
      def self.time(text)
        at = DateTime.iso8601(text.sub(" ", "T")).new_offset(0) if TIME.match?(text)
        Time.utc(at.year, at.month, at.day, at.hour, at.minute, at.second + at.second_fraction) if at && YEARS.cover?(at.year)
      rescue Date::Error
        nil
      end

      # @param kind [Symbol] see {ActiveRecordRows::ColumnTypes#kind}
      # @return [Boolean] whether the string is a value of that kind
      def self.value?(kind, text) = !KINDS.fetch(kind).last.call(text).nil?

      # @param scopes [ViewerScopes] values that the viewer may not see are compared as NULL
      def initialize(definition, adapter, by, scopes)
        @definition = definition
        @adapter = adapter
        @by = by
        @scopes = scopes
        @end = adapter.at(by.path)
      end

      # @yieldparam column [Symbol] a column of the resource's table
      # @yieldreturn [String] SQL for the column in the surrounding statement;
      #   default: the quoted table and column
      # @return [String]
      def sql
        own = by.own? ? nil : correlated
        column = own ? own.key : by.column
        outer = block_given? ? yield(column) : @adapter.types.qualified(column)
        return outer unless own

        @scopes.filled(own.hides?(@adapter.types.table) ? own.beside(outer) : own.within(outer))
      end

      # @return [Symbol, nil] :enum, or see {ActiveRecordRows::ColumnTypes#kind}
      def kind
        @kind ||= @end.types.enum(by.column) ? :enum : @end.types.kind(by.column)
      end

      # @param operator [Symbol]
      # @param texts [Array<String>]
      # @param parameter [String] the query parameter's name, for messages
      # @return [String] an SQL condition
      # @raise [BadRequest]
      def condition(operator, texts, parameter)
        case operator
        when :in then among(texts, parameter)
        when :null then "(#{sql} IS #{"NOT " unless read(:boolean, texts.first, "#{parameter}[null]")}NULL)"
        when :like then like(texts.first, "#{parameter}[like]")
        else compare(operator, texts, "#{parameter}[#{operator}]")
        end
      end

      # @param value [Object] of the column's type
      # @return [String] SQL
      def literal(value) = @end.types.literal(value)

      private

      attr_reader :by

      def correlated = built(:correlated) { |visible| Association::Correlated.path(@adapter, by.path, by.column, visible) }

      # The end of a path is compared once for each row of its table, and an index on it can be used. NULL must not match.
      # @yieldparam value [String] SQL
      # @yieldreturn [String] an SQL condition
      def matching
        before, value, after = by.own? ? nil : around
        before ? "#{before}#{yield value}#{@scopes.filled(after)}" : yield(sql)
      end

      def around
        built(:around) do |visible|
          path = JoinedPaths::Matching.new(@adapter, by.path, by.column, visible)
          path.possible? ? path.around(@adapter.types.qualified(@adapter.association(by.path.first).owner_key)) : []
        end
      end

      # Building SQL for a path costs more than a short SELECT, so it is kept unless it depends on the request.
      # @yieldparam visible [Array<ScopedRows, nil>] the viewer's scope for each step
      def built(kind)
        visible = along.map { |definition| definition && @scopes.along(definition, @adapter) }
        changing = @adapter.along(by.path).reject(&:stable?)
        identities = changing.map(&:identity)
        return yield visible if identities.include?(nil)

        kept = @definition.derive([kind, @adapter.model, by.path, by.column]) { BoundedCache.new }
        key = visible.none? ? identities : [identities, visible.map { |seen| !seen.nil? }]
        kept.fetch(key) { yield(visible).then { |found| found if identities == changing.map(&:identity) } } || yield(visible)
      end

      def along
        @definition.derive([:along, @adapter.model, by.path]) { PlanScopes.resources_along(@definition, @adapter, by.path).freeze }
      end

      # `filter[x]=a,b` and `filter[x][in]=a,b` are the same filter, so the message names `filter[x]`.
      def among(texts, parameter) = matching { |value| "(#{value} IN (#{literals(texts, parameter)}))" }

      def compare(operator, texts, parameter)
        case operator
        when :eq then among(texts, parameter)
        when :not then "(#{sql} NOT IN (#{literals(texts, parameter)}) OR #{sql} IS NULL)"
        else
          refuse(parameter, "#{parameter} cannot be used: #{by.name} has no order") if UNORDERED.include?(kind)
          matching { |value| "(#{value} #{ORDERED.fetch(operator)} #{literals(texts, parameter)})" }
        end
      end

      def like(text, parameter)
        refuse(parameter, "#{parameter} cannot be used: #{by.name} is not text") unless kind == :text
        refuse(parameter, "#{parameter} may have #{MOST_STARS} * at most") if text.count("*") > MOST_STARS
        pattern = text.gsub(ESCAPED) { |character| "!#{character}" }.gsub("*", "%")
        matching { |value| "(#{value} LIKE #{literal(pattern)} ESCAPE '!')" }
      end

      def literals(texts, parameter)
        texts.map { |text| literal(kind == :enum ? stored(text, parameter) : value(text, parameter)) }.join(", ")
      end

      def stored(text, parameter)
        names = @end.types.enum(by.column)
        names.fetch(text) do
          refuse(parameter, "#{Parameter.shown(text).inspect} is no #{by.name}#{Nearest.hint(Parameter.shown(text), names.keys)}")
        end
      end

      def value(text, parameter)
        value = @end.types.compared(by.column, read(kind, text, parameter))
        refuse(parameter, "#{Parameter.shown(text).inspect} is no #{by.name}") if value.nil?
        value
      end

      def read(kind, text, parameter)
        wanted, reader = KINDS.fetch(kind)
        value = reader.call(text)
        value.nil? ? refuse(parameter, "#{parameter} must be #{wanted}, got #{Parameter.shown(text).inspect}") : value
      end

      def refuse(parameter, detail) = Parameter.refuse(parameter, detail)
    end
  end
end
