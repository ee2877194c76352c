# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Writes one lookup or one grouped calculation for statements that query value by value, outside of
      # associations.
      #
      #   LookUp.new(one).fix.text
      #   # => "collect the values before the loop at app/jobs/import.rb:7 and ask once: Tag.where(id: values).index_by(&:id)"
      #
      # With several conditions, the statements or the source line must show which one changes; the others
      # must be literals.
      class LookUp
        # @param one [Verdict::Case]
        def initialize(one)
          @one = one
          @shape = one.group.shape
          @models = @shape.library
          @source = Source.at(one.site)
          @kind = @models.kind_column(@shape)
          @model = asked_of(Words.named(@shape.models, @source.constants))
          @equal = @shape.equal.uniq - [@kind]
        end

        # @return [Fix]
        def fix
          reason = refusal
          return Fix.none(reason) if reason
          return through_association if @one.held && !@shape.calculation? && !@shape.existence?

          Fix.new("collect the values before the loop at #{at} and ask once#{@model ? ": #{code}" : modelless}")
        end

        private

        # The subclass in the statement's name, if it is always the same: it then filters by the inheritance
        # column.
        def asked_of(model)
          named = @models.named(@shape) if @kind && !varying.include?(@kind)
          named && model && named < model ? named : model
        end

        def at = CallSite.location(@one.site)

        # Uses an association whose foreign keys the loaded records hold.
        def through_association
          preload = Detect.models(@one.held.model).preload(Preload.path([*@one.parent.path, @one.held.name]))
          Fix.new("add .#{preload} where the #{Words.plural(@one.parent.model)} are loaded: #{CallSite.location(@one.parent.site)} " \
                  "and read .#{@one.held.name} at #{at}")
        end

        def refusal
          if @shape.tables.size > 1 then "it reads #{@shape.tables.join(", ")}"
          elsif @equal.empty? || column.nil? then unclear
          elsif @shape.locks? || @source.locks? then "each row is locked by itself at #{at}, which holds few locks at a time"
          elsif some? then "it reads a page for each value"
          elsif @model && !@models.column?(@model, column) then "#{column} is no column of #{@model.name}"
          elsif @model.nil? ? @shape.conditions.size > 1 : incomplete? then "#{at} does not show all of its conditions"
          end
        end

        def unclear
          return "it has no condition of the form column = value" if @equal.empty?

          "it has conditions on #{@equal.join(", ")}, and #{at} does not show which changes"
        end

        # Without a model there is no code to write, but one query still replaces many.
        def modelless
          counted = " and GROUP BY #{column}" if @shape.calculation?
          ", with #{column} IN (…) in place of #{column} = …#{counted} (no model of the table #{@shape.table} is known)"
        end

        # The column whose value changes.
        def column
          @equal.size == 1 ? @equal.first : (changing.first if changing.size == 1)
        end

        # Columns that were observed to change, or else columns without a literal at the line.
        def changing = @changing ||= varying.any? ? @equal & varying : @equal - constant.keys

        def varying = @one.group.pieces&.varying.to_a

        # @return [Hash{String => String}] columns and the literals that they equal
        def constant
          @constant ||= @equal.filter_map { |name| [name, @source.value(name).text] if @source.value(name)&.constant? }.to_h
        end

        # Whether the line takes several rows of each value, but not all.
        def some? = @shape.single? && (@shape.paged? || @source.limits?) && column != @models.primary_key(@model || Object)

        def code
          return @code if defined?(@code)

          bulk = Bulk.of(@models)
          @code = if @shape.calculation? then bulk.calculation(@model, column, @shape.fingerprint, further)
                  elsif @shape.existence? then bulk.existing(@model, column, further)
                  else bulk.records(@model, column, [further, order].reject(&:empty?).join("."))
                  end
        end

        # Conditions that stayed the same are copied from the source line.
        def further(text = :text)
          same = (@equal - [column]).filter_map { |name| [name, @source.value(name)] if constant[name] || varying.any? }
          pairs = same.filter_map { |name, value| "#{name}: #{value.public_send(text)}" if value }
          pairs.any? ? "where(#{pairs.join(", ")})" : ""
        end

        # The order that decides which record is the first.
        def order = @shape.order ? @models.order(@shape.order) : ""

        # Whether the code's conditions differ from the statement's. If the model stands for all subclasses,
        # the condition on the inheritance column may be missing.
        def incomplete?
          return true if code.nil? || code.include?("…")

          ordered = !@shape.calculation? && !@shape.existence?
          calls = ["where(#{column}: 1)", further(:evaluable_text), ordered ? order : ""]
          statement = Selection.new(@shape, without: [*(@kind unless @model == @models.named(@shape))])
          !statement.same?(Selection.of_model(@model, calls.reject(&:empty?).join(".")), ordered: ordered && !order.empty?)
        end
      end
    end
  end
end
