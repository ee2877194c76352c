# frozen_string_literal: true

require_relative "source/node"

module Castellan
  module Detect
    # The calls that are written at a line of the application.
    #
    #   line = Source.at(site)   # user.tokens.where(on_behalf: false).last
    #   line.calls.map(&:name)   # => [:user, :tokens, :where, :last]
    #   line.steps(:tokens)      # => [where(on_behalf: false), last], each a {Node}
    #   line.value("on_behalf")  # => the node of false
    #
    # Parses the file with Prism, or with Ripper where Prism is missing. A file that cannot be read or parsed has no calls.
    class Source
      MOST_FILES = 50
      LOCKS = %i[lock lock! with_lock for_update for_share lock_style].freeze
      RETRY = /\bretr(?:y|ies|iable)\b|Stale|NoExistingObject/
      LIMITS = %i[limit first last take].freeze
      OTHER_ONES = %i[second third fourth fifth forty_two second_to_last third_to_last offset].freeze
      private_constant :MOST_FILES, :LOCKS, :RETRY, :LIMITS, :OTHER_ONES

      @files = {}
      @lock = Mutex.new

      class << self
        # @param site [Integer, nil] see {CallSite}
        # @return [Source]
        def at(site)
          return new(nil, "", 0) if site.nil?

          new(*read(File.expand_path(CallSite.path(site), CallSite.root)), CallSite.line(site))
        end

        # @return [Module] with `parse(text) → Node`
        def parser
          @parser ||= begin
            require "prism"
            require_relative "source/prism_parser"
            PrismParser
          rescue LoadError
            require_relative "source/ripper_parser"
            RipperParser
          end
        end

        private

        def read(path)
          stat = File.stat(path)
          key = [path, stat.mtime, stat.size]
          @lock.synchronize do
            @files.clear if @files.size >= MOST_FILES
            @files.fetch(key) { @files[key] = File.read(path).scrub.then { |text| [parser.parse(text), text] } }
          end
        rescue SystemCallError
          [nil, ""]
        end
      end

      # @param call [Node]
      # @return [Boolean] whether it takes several records, or another than the first or last
      def self.limit?(call)
        return true if OTHER_ONES.include?(call.name)

        LIMITS.include?(call.name) && call.arguments.any? && call.arguments.none? { |one| %i[pair hash].include?(one.kind) } &&
          call.arguments.map(&:text) != ["1"]
      end

      # @param tree [Node, nil] of the file
      # @param text [String] the file
      # @param line [Integer]
      def initialize(tree, text, line)
        @tree = tree
        @text = text
        @line = line
      end

      # The calls named at the line, with their receivers and arguments, which may stand on other lines; in the order of the source.
      # @return [Array<Node>]
      def calls
        @calls ||= reached.select(&:call?)
      end

      # @return [Boolean] whether a method of this name is called, on whatever
      def calls?(*names) = calls.any? { |call| names.include?(call.name) }

      # @return [Array<Node>] calls that are no receiver of another
      def outermost = calls.reject { |call| call.parent&.call? && call.parent.receiver.equal?(call) && calls.include?(call.parent) }

      # What is called on an association; an association in a local variable counts.
      # @param name [Symbol] the association's, or a dataset's
      # @return [Array<Array<Node>>] for each time that it is written the calls that follow, from the first to the outermost
      def steps(*names)
        starts = calls.select { |call| names.include?(call.name) }
        starts.map { |call| following(call) } + through_variables(names)
      end

      # @return [Array<String>] constants by the names that are written
      def constants = @constants ||= reached.select { |node| node.kind == :constant }.map(&:text)

      # @param column [String]
      # @return [Node, nil] the value that is written for a column: `where(column: value)`
      def value(column) = pairs.find { |pair| pair.name.to_s == column }&.children&.first

      # @return [Array<Node>]
      def pairs = @pairs ||= reached.select { |node| node.kind == :pair }

      # @return [Boolean] whether the line takes only the first answer of several, as in `a.first || b.first`
      def alternatives? = reached.any? { |node| node.kind == :or } || enclosing.any? { |node| node.kind == :or }

      # @return [Boolean] whether several records are taken of something
      def limits? = calls.any? { |call| Source.limit?(call) }

      # @return [Boolean] whether a name is written, as a call or as a symbol
      def names?(*names)
        calls?(*names) || reached.any? { |node| node.kind == :literal && names.any? { |name| node.text == name.inspect } }
      end

      # @return [Boolean] whether the rows that it reads are locked
      def locks? = calls?(*LOCKS)

      # A `rescue` stands below the line, what names the error and takes a block above.
      # @return [Boolean] whether it is tried again when somebody else has written the same row
      def attempted? = @text.lines[[@line - 6, 0].max..(@line + 9)].to_a.any? { |line| line.match?(RETRY) }

      # @return [Boolean] whether the method around it asks an association if it is loaded, and then takes the loaded records
      def asks_loaded?(name)
        definition&.each&.any? { |node| node.call? && node.name == :loaded? && node.receiver&.call? && node.receiver.name == name } || false
      end

      # @return [Boolean] whether a method is called on what an association gives: `node.parent.author`, or in a block of its
      def reads_below?(name, association)
        calls.select { |call| call.name == name && call.receiver }.any? do |call|
          block = call.ancestors.find { |node| node.kind == :block } if call.receiver.kind == :local
          (block ? block.parent : call.receiver).chain.any? { |one| one.name == association }
        end
      end

      # @return [Symbol, nil] the method around the line
      def method_name = definition&.name

      private

      def reached
        @reached ||= all.select { |node| node.line == @line }.flat_map { |node| [node, *below(node)] }.uniq(&:object_id)
                        .sort_by { |node| [node.order] }
      end

      def all = @tree ? @tree.each.to_a : []

      # Receivers and arguments; a block of several lines is code of its own.
      def below(node)
        parts = node.parts.reject { |part| part.kind == :block && part.last_line > @line }
        parts.flat_map { |part| [part, *below(part)] }
      end

      def enclosing = reached.flat_map { |node| [node, *node.ancestors] }.uniq(&:object_id).select { |node| node.line >= @line }

      def following(call)
        steps = []
        while call.parent&.call? && call.parent.receiver.equal?(call)
          call = call.parent
          steps << call
        end
        steps
      end

      def through_variables(names)
        reached.select { |node| node.kind == :local && node.parent&.call? }.filter_map do |read|
          value = assigned(read) or next
          start = value.chain.find { |call| names.include?(call.name) } or next
          following(start) + following(read)
        end
      end

      # What the variable holds: the last value that the method gives it before.
      def assigned(read)
        scope = definition || @tree
        scope.each.select { |node| node.kind == :assign && node.name == read.name && node.order < read.order }.last&.children&.first
      end

      def definition
        @definition ||= all.select { |node| node.kind == :def && node.covers?(@line) }.max_by(&:line)
      end
    end
  end
end
