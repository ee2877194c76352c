# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Writes one query, or one grouped calculation, to replace a query for each value.
      #
      #   LookUp.new(one).fix.text
      #   # => "collect the values before the loop around app/jobs/import.rb:7 and query once: Tag.where(id: values).index_by(&:id)"
      #
      # If there are several conditions, the statements or the source line must show which value changes, and
      # the line must show the other values. Code is suggested only if it selects the same rows as the
      # statements.
      class LookUp
        CALCULATION = /\Aselect (count|sum|avg|min|max)\((?:\*|\?|(?:\w+\.)?(\w+))\)(?: as [\w?]+)? from \w(?!.* group by )/m
        private_constant :CALCULATION

        # @param chain [Chain, nil] the calls on the association, if the line names it
        def initialize(one, chain = nil)
          @one = one
          @chain = chain
          @shape = one.group.shape
          @models = @shape.library
          @source = Source.at(one.site)
          @kind = @models.kind_column(@shape)
          @model = asked_of(one.link ? one.link.target : @shape.model_at(one.site))
          @equal = @shape.equal.uniq - [@kind, one.link&.type]
        end

        def fix
          reason = refusal
          reason ? Fix.none(reason) : Fix.new(text: "collect the values before the loop around #{at} and query once: #{code}")
        end

        private

        # Single-table inheritance: if all statements filter by the same subclass, ask the subclass.
        def asked_of(model)
          named = @models.named(@shape) if @kind && !varying.include?(@kind)
          named && model && named < model ? named : model
        end

        def at = CallSite.location(@one.site)

        def refusal
          if @one.link && !keyed? then by_hand
          elsif @shape.tables.size > 1 then "it reads several tables (#{@shape.tables.join(", ")}): query once for all records by hand"
          elsif column.nil? then unclear
          elsif @model.nil? then "query once, with #{column} IN (…): no model of the table #{@shape.table} is known, so there is no code"
          elsif @shape.locks? || @source.locks? then "each row is locked by itself at #{at}, which holds few locks at a time"
          elsif some? then "it reads a page for each value"
          elsif subclasses? then "the statements read several subclasses of #{@model.name}: query each of them once, with #{column} IN (…)"
          else refused_code
          end
        end

        def by_hand
          return "preload #{@one.link} and compute it in Ruby (size, any?, find), or join and group by hand" if @models.preloads?(@one.link)

          "#{@one.link} cannot be preloaded: #{@models.not_preloaded}; join and group by hand"
        end

        def keyed? = @one.link.through.nil? && !@one.link.composite? && (@one.link.type.nil? || one_class?)

        # Whether all owners of a polymorphic association are those that the line of the parents loads.
        def one_class? = !varying.include?(@one.link.type) && (@one.parent.count.nil? || @one.count <= @one.parent.count)

        def unclear
          return "it has no condition of the form column = value" if @equal.empty?

          "it has conditions on #{@equal.join(", ")}, and #{at} does not show which changes"
        end

        def refused_code
          if !@models.column?(@model, column) then "#{column} is no column of #{@model.name}"
          elsif @chain && !@chain.constant? && !steady? then "the conditions on #{@one.link} at #{at} differ from record to record"
          elsif of_record? then "the conditions at #{at} may differ from record to record"
          elsif code.nil? && @shape.grouped? then "each statement groups its rows: query once, grouped by #{column} as well"
          elsif incomplete? then "#{at} does not contain all conditions of the query"
          elsif @one.mixed.any? then "the queries of #{@one.link} at #{at} differ in #{@one.mixed.join(" and ")}"
          end
        end

        # The column whose value changes between the statements.
        def column
          return @one.link.key if @one.link

          @equal.size == 1 ? @equal.first : (changing.first if changing.size == 1)
        end

        # The columns whose values changed, or else the columns whose value at the line is not a literal.
        def changing = @changing ||= varying.any? ? @equal & varying : @equal.reject { |name| @source.value(name)&.constant? }

        def varying = @one.group.pieces&.varying.to_a

        # Whether the computed conditions had the same values for all records.
        def steady? = varying.any? && !(@equal - [column]).intersect?(varying)

        # Whether a condition reads the record of the loop, so that it cannot be moved before the loop.
        def of_record?
          owner = @chain ? @chain.owner : @source.value(column)
          locals = owner ? owner.all.select { |node| node.kind == :local }.map(&:name) : []
          own = owner.nil? || (owner.call? && owner.receiver.nil? && owner.arguments.empty?)
          values = @chain ? @chain.values : (@equal - [column]).filter_map { |name| @source.value(name) }
          values.flat_map(&:all).any? do |node|
            node.kind == :local ? locals.include?(node.name) : own && node.call? && node.receiver.nil?
          end
        end

        # Whether the line takes some of the rows of each value, but not all.
        def some? = @one.link.nil? && @shape.single? && (@shape.paged? || @source.limits?) && column != @models.primary_key(@model)

        # Whether rows that are found by something else than their key are those of several subclasses.
        def subclasses? = varying.include?(@kind) && column != @models.primary_key(@model)

        def code
          @code ||= if @shape.calculation? then calculation
                    elsif @shape.existence? then @models.existing(where(unordered), column)
                    elsif @shape.columns? then @models.records(where(order), column, [column] == Array(@model.primary_key).map(&:to_s))
                    end
        end

        # The condition on the key, with the class of the owners of a polymorphic association.
        def keys(values)
          type = @one.link&.type
          "where(#{"#{type}: #{@one.link.model.polymorphic_name.inspect}, " if type}#{column}: #{values})"
        end

        def where(*more) = [@model.name, keys("values"), further, *more].compact.reject(&:empty?).join(".")

        def calculation
          name, of = @shape.fingerprint.match(CALCULATION)&.captures
          @models.calculation(where(unordered), column, name, of) if name
        end

        # The other conditions, as the line writes them.
        def further(text = :text)
          return @chain.code(text) if @chain

          pairs = (@equal - [column]).filter_map { |name| [name, @source.value(name)] if steady? || @source.value(name)&.constant? }
          pairs = pairs.filter_map { |name, value| "#{name}: #{value.public_send(text)}" if value }
          pairs.any? ? "where(#{pairs.join(", ")})" : ""
        end

        # PostgreSQL refuses to group rows, or to select distinct values, in an order by another column.
        def unordered = Selection.of_model(@model, evaluable)&.order ? @models.unordered : ""

        # The code that selects the rows, with a sample for the values.
        def evaluable(*more)
          [keys(@models.sample(@model, column)), further(:evaluable_text), *more].reject(&:empty?).join(".")
        end

        # The order matters because it decides which record is the first.
        def order = @shape.order ? @models.order(@shape.order) : ""

        # Whether the code selects other rows than the statement. If the model stands for all of its
        # subclasses, the code may lack the condition on the inheritance column.
        def incomplete?
          return true if code.nil? || code.include?("…")

          statement = Selection.new(@shape, without: [*(@kind unless @model == @models.named(@shape))])
          !statement.same?(Selection.of_model(@model, evaluable(@shape.records? ? order : "")), ordered: @shape.records? && !order.empty?)
        end
      end
    end
  end
end
