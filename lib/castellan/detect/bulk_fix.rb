# frozen_string_literal: true

module Castellan
  module Detect
    # The fix for statements that are no walk through an association: the same look-up for one value after the other.
    #
    #   BulkFix.new(one).cure.text
    #   # => "collect the values before the loop at app/jobs/import.rb:7 and ask once: Tag.where(id: values).index_by(&:id)"
    #
    # Of several conditions the statements or the line of source must show which one changes.
    class BulkFix
      # How many of each: conditions, which Sequel's `first` takes, are no number.
      SOME = /\.(?:limit|first|take)\((?!\s*(?:\w+:(?!:)|[:"']))(?<some>(?:[^(){}|]|\([^(){}|]*\))+)\)/
      private_constant :SOME

      # @param one [Verdict::Case]
      def initialize(one)
        @one = one
        @shape = one.group.shape
        @models = @shape.library
        @source = WrittenCall.at(one.site)
        @kind = @models.kind_column(@shape)
        @model = asked_of(Words.named(@shape.models, @source))
        @equal = @shape.equal.uniq - [@kind]
      end

      # @return [Cure]
      def cure
        return modelless if @model.nil?

        reason = refusal
        return Cure.refused(reason) if reason

        Cure.new(text: "collect the values before the loop at #{at} and ask once: #{code}#{through_association}",
                 remedy: ({ together: column, of: @model.name } unless code.include?("…") || some?))
      end

      private

      # The subclass that the statement names, where that is the same each time: it chooses by the column of the class's name.
      def asked_of(model)
        named = @models.named(@shape) if @kind && !varying.include?(@kind)
        named && model && named < model ? named : model
      end

      def at = CallSite.location(@one.site)

      # Where the values are keys that the records of one load hold.
      def through_association
        return if @one.held.nil? || @shape.calculation? || @shape.existence?

        preload = Detect.models(@one.held.model).preload(Preload.path([*@one.parent.path, @one.held.name]))
        "; or add .#{preload} where the #{Words.plural(@one.parent.model)} are loaded: #{CallSite.location(@one.parent.site)} " \
          "and read .#{@one.held.name} at #{at}"
      end

      def refusal
        if @equal.empty? then "the statement has no condition of the form column = value"
        elsif @shape.tables.size > 1 then "it reads #{@shape.tables.join(", ")}: ask for all at once, with a list of values in place of one"
        elsif column.nil? then "it has conditions on #{@equal.join(", ")}, and #{at} does not show which changes"
        elsif !@models.column?(@model, column) then "#{column} is no column of #{@model.name}"
        elsif @shape.single? && @shape.paged? then "it reads a page for each value: read all of them at once, and cut the pages in Ruby"
        elsif code.nil? then "this calculation is not understood: ask for all at once, grouped by #{column}"
        elsif @shape.locks? || WrittenCall.locks?(@source) then locked
        end
      end

      def locked
        "each row is locked by itself at #{at}, which holds few locks at a time; where all may be locked until the end of one " \
          "transaction: #{Bulk.of(@models).locked(@model, column)}"
      end

      # Without a model there is no code to write, but it can be asked at once all the same.
      def modelless
        return Cure.refused("no model of the table #{@shape.table || "it reads"} is known") if @shape.table.nil? || column.nil?

        counted = " and GROUP BY #{column}" if @shape.calculation?
        Cure.new(text: "collect the values before the loop at #{at} and ask once, with #{column} IN (…) in place of #{column} = …" \
                       "#{counted} (no model of the table #{@shape.table} is known)")
      end

      # The one that changes.
      def column
        @equal.size == 1 ? @equal.first : (changing.first if changing.size == 1)
      end

      # What was seen to change, else what is not written with a literal.
      def changing
        @changing ||= varying.any? ? @equal & varying : @equal - constant.keys
      end

      def varying = @one.group.pieces&.varying.to_a

      # @return [Hash{String => String}] columns and the literals that they must equal
      def constant
        @constant ||= @equal.to_h { |name| [name, WrittenCall.literal(@source, name)] }.compact
      end

      def code
        return @bulk_code if defined?(@bulk_code)

        bulk = Bulk.of(@models)
        @bulk_code = if @shape.calculation? then bulk.calculation(@model, column, @shape.fingerprint, conditions)
                     elsif @shape.existence? then bulk.existing(@model, column, conditions)
                     else "#{bulk.records(@model, column, [conditions, order].reject(&:empty?).join("."))}#{first}"
                     end
      end

      # A condition that is no equation is left to the reader.
      def conditions
        known = @equal - [column]
        further = known.map { |name| "#{name}: #{constant.fetch(name, "…")}" }
        [further.any? ? "where(#{further.join(", ")})" : "", @shape.compares? ? "where(…)" : ""].reject(&:empty?).join(".")
      end

      # Whether several of each are wanted, but not all.
      def some? = @shape.single? && column != @models.primary_key(@model) && @source.match?(SOME)

      def first = some? ? ".transform_values { |all| all.first(#{@source[SOME, :some]}) }" : ""

      # The order in which one record would have been the first.
      def order = @shape.order ? @models.order(@shape.order) : ""
    end
  end
end
