# frozen_string_literal: true

require_relative "source/syntax_node"
require_relative "source/parser"

module Castellan
  module Detect
    # Finds the calls at a line of the application.
    #
    #   line = Source.at(site)   # user.tokens.where(on_behalf: false).last
    #   line.calls.map(&:name)   # => [:user, :tokens, :where, :last]
    #   line.steps(:tokens)      # => [where(on_behalf: false), last], each a {SyntaxNode}
    #   line.value("on_behalf")  # => the node of false
    #
    # A file that is unreadable or has a syntax error has no calls.
    class Source
      MOST_FILES = 50
      LOCKS = %i[lock lock! with_lock for_update for_share lock_style].freeze
      LIMITS = %i[limit first last take].freeze
      OTHER_ONES = %i[second third fourth fifth forty_two second_to_last third_to_last offset].freeze
      private_constant :MOST_FILES, :LOCKS, :LIMITS, :OTHER_ONES

      @files = BoundedCache.new(limit: MOST_FILES)
      @lock = Mutex.new

      class << self
        # @param site [Integer, nil] see {CallSite}
        # @return [Source] cached until the file changes
        def at(site)
          return new([], 0) unless site

          @lock.synchronize { file(File.expand_path(CallSite.path(site), CallSite.root))[CallSite.line(site)] }
        rescue SystemCallError
          new([], 0)
        end

        private

        def file(path)
          stat = File.stat(path)
          @files.fetch([path, stat.mtime, stat.size]) do
            nodes = Parser.parse(File.read(path, encoding: "UTF-8").scrub).all
            Hash.new { |lines, number| lines[number] = new(nodes, number) }
          end
        end
      end

      # @return [Boolean] whether the call takes several records, or a single one other than the first or last
      def self.limit?(call)
        return true if OTHER_ONES.include?(call.name)

        LIMITS.include?(call.name) && call.arguments.any? && call.arguments.none? { |one| %i[pair hash].include?(one.kind) } &&
          call.arguments.map(&:text) != ["1"]
      end

      # @param all [Array<SyntaxNode>] the nodes of the file
      def initialize(all, line)
        @all = all
        @line = line
      end

      # The calls whose names are on the line. Their receivers and arguments may be on other lines.
      # @return [Array<SyntaxNode>] in the order of the source
      def calls
        @calls ||= reached.select(&:call?)
      end

      # @return [Boolean] whether the line calls one of these methods, on any receiver
      def calls?(*names) = calls.any? { |call| names.include?(call.name) }

      # The calls that are chained to an association.
      # @param names [Array<Symbol>] the association, or its dataset method
      # @return [Array<Array<SyntaxNode>>] for each call of the association, the calls that follow, innermost
      #   first
      def steps(*names) = calls.select { |call| names.include?(call.name) }.map { |call| following(call) }

      # @return [Array<String>] constants as the line writes them
      def constants = @constants ||= reached.select { |node| node.kind == :constant }.map(&:text)

      # @return [SyntaxNode, nil] the value that the line gives for the column: `where(column: value)`
      def value(column) = reached.find { |node| node.kind == :pair && node.name.to_s == column }&.children&.first

      # @return [Boolean] true if the line is part of an `or` or `and`, so that not all of its calls run
      def alternatives?
        reached.any? { |node| [node, *node.ancestors.select { |one| one.line >= @line }].any? { |one| one.kind == :or } }
      end

      # @return [Boolean] whether a call at the line takes several records, see {.limit?}
      def limits? = calls.any? { |call| Source.limit?(call) }

      # @return [Boolean] whether one of the names is a call or a literal symbol at the line
      def names?(*names)
        calls?(*names) || reached.any? { |node| node.kind == :literal && names.any? { |name| node.text == name.inspect } }
      end

      def locks? = calls?(*LOCKS)

      # @return [Boolean] whether the method around the line calls `loaded?` on the association
      def asks_loaded?(name)
        definition&.all&.any? { |node| node.call? && node.name == :loaded? && node.receiver&.call? && node.receiver.name == name } || false
      end

      # @return [Boolean] whether the line calls it on the association's result or in its block:
      #   `node.parent.author`
      def reads_below?(name, association) = !nearest_above(name, [association]).nil?

      # @return [Symbol, nil] the association on whose result the line calls it: `:children` in
      #   `node.parent.children.each { |child| child.author }`
      def nearest_above(name, associations)
        calls.select { |call| call.name == name && call.receiver }.filter_map { |call|
          block = call.ancestors.find { |node| node.kind == :block } if call.receiver.kind == :local
          (block ? block.parent : call.receiver).chain.map(&:name).reverse.find { |one| associations.include?(one) }
        }.first
      end

      private

      def reached
        @reached ||= @all & @all.select { |node| node.line == @line }.flat_map { |node| [node, *below(node)] }
      end

      # Includes receivers and arguments, but not a block of several lines, which is separate code.
      def below(node)
        parts = node.parts.reject { |part| part.kind == :block && part.last_line > @line }
        parts.flat_map { |part| [part, *below(part)] }
      end

      def following(call)
        steps = []
        while call.parent&.call? && call.parent.receiver.equal?(call)
          call = call.parent
          steps << call
        end
        steps
      end

      def definition
        @definition ||= @all.select { |node| node.kind == :def && @line.between?(node.line, node.last_line) }.max_by(&:line)
      end
    end
  end
end
