# frozen_string_literal: true

module Castellan
  module Rows
    # Computes members in Ruby: blocks over declared columns, and columns that the ORM's type must cast.
    #
    #   ComputedMembers.new(reader, reader.coders, rows, viewer).to_h   # => { 2 => ['"Ada"', '"Alan"'] }
    #
    # Blocks receive a Struct of the declared columns, not the record.
    class ComputedMembers
      # @param coders [Array<Symbol, nil>] the coders of the node's columns;
      #   nil for columns that the ORM casts
      def initialize(reader, coders, rows, viewer)
        @node = reader.node
        @adapter = reader.adapter
        @coders = coders
        @rows = rows
        @viewer = viewer
      end

      # @return [Hash{Integer => Array<String>}] one JSON text per row, by
      #   the member's position in node.members
      def to_h
        @node.members.each_with_index.with_object({}) do |(member, index), computed|
          values = values_of(member)
          computed[index] = texts(member, values) if values
        end
      end

      # @param index [Integer] a member whose coder cannot write one of the values
      # @return [Array<String>, nil] JSON texts of the values cast by the ORM's type; nil if they fail as well
      def retyped(index)
        member = @node.members[index]
        texts(member, column_values(member.positions.first))
      rescue StandardError
        nil # the caller raises the coder's error, which names the value
      end
      alias call retyped

      # @return [Plan::RowSet::Asides, nil]
      def asides = Asides.of(@node, @adapter, -> { ids }) { |aside| computed(aside.computed, aside.positions) }

      private

      def ids = ColumnValues.column(@rows, 0)
      def texts(member, values) = JSONValue.texts(values, @adapter, @node, member.attribute.key) { |row| ids[row] }

      def values_of(member)
        case member.attribute.source
        when :computed then computed(member.attribute, member.positions)
        when :column, :path then column_values(member.positions.first) unless @coders[member.positions.first]
        end
      end

      def computed(computed, positions)
        rows = Blocks.rows(computed.columns, positions.map { |position| column_values(position) }, ColumnValues.count(@rows))
        rows.map(&Blocks.bound(computed.block, @viewer))
      end

      def column_values(position)
        column = @node.columns[position]
        types = @adapter.at(column.path).types
        ColumnValues.column(@rows, position).map { |value| types.cast(column.name, value) }
      end

      # Computes for each row which members are written, and the JSON of links and meta objects.
      #
      #   Asides.of(node, adapter, -> { ids }) { |aside| values }   # => Plan::RowSet::Asides or nil
      class Asides
        # @param ids [#call] returns the id of each row
        # @yieldparam aside [Plan::Node::Aside]
        # @yieldreturn [Array<Object>] one computed value per row
        # @return [Plan::RowSet::Asides, nil]
        def self.of(node, adapter, ids, &values)
          new(node, adapter, ids.call, values).call unless node.asides.empty?
        end

        def initialize(node, adapter, ids, values)
          @node = node
          @adapter = adapter
          @ids = ids
          @values = node.asides.map { |aside| [aside, values.call(aside)] }
        end

        # @return [Plan::RowSet::Asides]
        def call
          members = truths(:attribute_if) { |owner| @node.members.index { |member| member.attribute.name == owner } }
          around = chosen(:edge_link, :edge_meta).group_by { |aside, _| edge(aside.owner) }
          Plan::RowSet::Asides.new(members, truths(:edge_if) { |owner| edge(owner) }, after(chosen(:link, :meta)),
                                   around.to_h { |index, values| [index, after(values, alone: !@node.edges[index].data)] })
        end

        private

        def chosen(*kinds) = @values.select { |aside, _| kinds.include?(aside.kind) }
        def edge(owner) = @node.edges.index { |edge| edge.relationship.name == owner }
        def truths(kind) = chosen(kind).to_h { |aside, values| [yield(aside.owner), values] }

        # @param alone [Boolean] whether the object has no other members; it then needs an empty meta
        # @return [Array<String>, nil] `,"links":{…},"meta":{…}` for each row
        def after(values, alone: false)
          return if values.empty?

          links, metas = values.partition { |aside, _| %i[link edge_link].include?(aside.kind) }
          written = metas.map { |_, found| texts("meta", found) }
          written.unshift(texts("links", links_of(links))) unless links.empty?
          written.transpose.map { |texts| (text = texts.join).empty? && alone ? ",\"meta\":{}" : text }
        end

        def links_of(links)
          Array.new(@ids.size) { |row| links.to_h { |aside, values| [aside.name.last, values[row]] } }
        end

        # A block returns nil to omit a meta object.
        def texts(member, values)
          texts = JSONValue.texts(values, @adapter, @node, member) { |row| @ids[row] }
          texts.map { |text| text == "null" ? "" : ",\"#{member}\":#{text}" }
        end
      end

      # Binds a declaration's block to the viewer, and builds the rows that the block receives.
      #
      #   Blocks.bound(->(row, viewer) { viewer.sees?(row) }, viewer).call(row)
      #   Blocks.bound(:title.to_proc, viewer).call(record)   # one argument, despite its parameters
      #   Blocks.rows(%i[first_name last_name], [%w[Ada Alan], %w[Lovelace Turing]], 2)
      #   # => [#<struct first_name="Ada", last_name="Lovelace">, …]
      module Blocks
        # Raises an error with the column's name if a block reads a column that its declaration does not list.
        module Unnamed
          def method_missing(name, *)
            return super if name.end_with?("=", "?", "!") || name.start_with?("to_")

            raise NoMethodError.new("the block reads #{name}, which it does not name: write columns: #{[*members, name].inspect} " \
                                    "if that is a column, or leave columns: out, and the block gets the record", name)
          end

          def respond_to_missing?(*) = false

          # Only the record has one: URL helpers would otherwise put the inspected Struct into the path.
          def to_param
            raise NoMethodError.new("a row has no to_param for the path of a URL: write post_url(row.id) instead of post_url(row) " \
                                    "(or leave columns: out, and the block gets the record)", :to_param)
          end
        end

        SYMBOL = [[:req], [:rest]].freeze
        ROWS = {} # rubocop:disable Style/MutableConstant
        LOCK = Mutex.new
        private_constant :SYMBOL, :ROWS, :LOCK, :Unnamed

        module_function

        def takes_viewer?(block)
          parameters = block.parameters
          parameters != SYMBOL && parameters.count { |kind, _| %i[req opt].include?(kind) } > 1
        end

        # @return [Proc] takes one argument, so that the block's parameters
        #   are checked once instead of per row
        def bound(block, viewer) = takes_viewer?(block) ? ->(row) { block.call(row, viewer) } : block

        # @param names [Array<Symbol>] the columns that the declaration lists
        def rows(names, columns, size)
          row = row_class(names)
          Array.new(size) { |index| row.new(*columns.map { |column| column[index] }) }
        end

        # Never removes classes: declarations use few lists of columns, and these do not change.
        def row_class(names)
          LOCK.synchronize { ROWS[names] ||= (names.empty? ? Struct.new(:id) : Struct.new(*names)).include(Unnamed) }
        end
        private_class_method :row_class
      end
    end
  end
end
