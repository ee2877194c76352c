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
      # @param one [Verdict::Case]
      def initialize(one)
        @one = one
        @shape = one.group.shape
        @models = @shape.sequel? ? SequelModels : ActiveRecordModels
        @source = WrittenCall.at(one.site)
        @model = Words.named(@shape.models, @source)
      end

      # @return [Cure]
      def cure
        reason = refusal
        return Cure.refused(reason) if reason

        Cure.new(text: "collect the values before the loop at #{at} and ask once: #{code}",
                 remedy: ({ together: column, of: @model.name } unless code.include?("…")))
      end

      private

      def at = CallSite.location(@one.site)

      def refusal
        if @model.nil? then "no model of the table #{@shape.table || "it reads"} is known"
        elsif @shape.equal.empty? then "the statement has no condition of the form column = value"
        elsif @shape.tables.size > 1 then "it reads #{@shape.tables.join(", ")}: ask for all at once, with a list of values in place of one"
        elsif column.nil? then "it has conditions on #{@shape.equal.join(", ")}, and #{at} does not show which changes"
        elsif !@models.column?(@model, column) then "#{column} is no column of #{@model.name}"
        elsif code.nil? then "this calculation is not understood: ask for all at once, grouped by #{column}"
        elsif @shape.locks? || WrittenCall.locks?(@source) then locked
        end
      end

      def locked
        "each row is locked by itself at #{at}, which holds few locks at a time; where all may be locked until the end of one " \
          "transaction: #{Bulk.of(@models).locked(@model, column)}"
      end

      # The one that changes.
      def column
        @shape.equal.uniq.size == 1 ? @shape.equal.first : (changing.first if changing.size == 1)
      end

      # What was seen to change, else what is not written with a literal.
      def changing
        @changing ||= varying.any? ? @shape.equal.uniq & varying : @shape.equal.uniq - constant.keys
      end

      def varying = @one.group.pieces&.varying.to_a

      # @return [Hash{String => String}] columns and the literals that they must equal
      def constant
        @constant ||= @shape.equal.to_h { |name| [name, WrittenCall.literal(@source, name)] }.compact
      end

      def code
        return @bulk_code if defined?(@bulk_code)

        bulk = Bulk.of(@models)
        @bulk_code = if @shape.calculation? then bulk.calculation(@model, column, @shape.fingerprint, conditions)
                     elsif @shape.existence? then bulk.existing(@model, column, conditions)
                     else bulk.records(@model, column, [conditions, order].reject(&:empty?).join("."))
                     end
      end

      # A condition that is no equation is left to the reader.
      def conditions
        known = @shape.equal.uniq - [column]
        further = known.map { |name| "#{name}: #{constant.fetch(name, "…")}" }
        [further.any? ? "where(#{further.join(", ")})" : "", @shape.compares? ? "where(…)" : ""].reject(&:empty?).join(".")
      end

      # The order in which one record would have been the first.
      def order = @shape.order ? @models.order(@shape.order) : ""
    end
  end
end
