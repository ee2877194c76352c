# frozen_string_literal: true

require "prism"

module Castellan
  # Reads from Ruby sources, without running them, what each file defines, references and requires.
  #
  #   tree = Castellan::SourceTree.new("lib")
  #   tree.files                                   # => ["castellan/clock.rb", …]
  #   tree.definitions["castellan/clock.rb"]       # => ["Castellan", "Castellan::Clock"]
  #   tree.private_definitions["castellan/x.rb"]   # => ["Castellan::X::TABLE"], by private_constant
  #   tree.references["castellan/cli.rb"]          # => { "Castellan::VERSION" => 43 }, by line
  #   tree.requires["castellan/cli.rb"]            # => { "castellan/nearest" => 48, "json" => 3 }, including autoload
  #
  # Looks constants up like Ruby, from the innermost module outwards. Does not find constants that are
  # inherited from a superclass or built at run time (const_get, send).
  class SourceTree
    attr_reader :files, :definitions, :private_definitions, :requires

    def initialize(root)
      @root = root
      @files = Dir.glob("**/*.rb", base: root)
      @visitors = @files.to_h { |file| [file, visit(file)] }
      @definitions = @visitors.transform_values { |visitor| visitor.definitions.uniq }
      @private_definitions = @visitors.transform_values(&:private_definitions)
      @requires = @visitors.to_h { |file, visitor| [file, visitor.requires.transform_keys { |feature| feature_name(feature, file) }] }
      @names = @definitions.values.flatten.uniq.to_h { |name| [name, true] }
    end

    def references
      @references ||= @visitors.transform_values do |visitor|
        visitor.references.filter_map { |scopes, name, line| [resolve(scopes, name), line] }.select(&:first).to_h
      end
    end

    private

    def visit(file)
      result = Prism.parse_file(File.join(@root, file))
      raise "#{file}: #{result.errors.first.message}" if result.failure?

      Visitor.new.tap { |visitor| result.value.accept(visitor) }
    end

    # In castellan/cli.rb, ["relative", "nearest"] means castellan/nearest.
    def feature_name((kind, feature), file)
      return feature unless kind == :require_relative

      File.expand_path(feature, File.dirname("/#{file}")).delete_prefix("/").delete_suffix(".rb")
    end

    def resolve(scopes, name)
      first, *rest = name.split("::")
      home = [*scopes.reverse, nil].map { |scope| [scope, first].compact.join("::") }.find { |candidate| @names[candidate] }
      home && rest.inject(home) { |full, part| @names["#{full}::#{part}"] ? "#{full}::#{part}" : (break full) }
    end

    # Collects definitions and references. Scopes are the names of the enclosing modules, outermost first.
    class Visitor < Prism::Visitor
      LOADERS = %i[require require_relative require_gem].freeze

      attr_reader :definitions, :private_definitions, :references, :requires

      def initialize
        super
        @scopes = []
        @definitions = []
        @private_definitions = []
        @references = []
        @requires = {}
      end

      def visit_module_node(node)
        enter(node.constant_path) { node.body&.accept(self) }
      end

      def visit_class_node(node)
        node.superclass&.accept(self)
        enter(node.constant_path) { node.body&.accept(self) }
      end

      def visit_constant_write_node(node)
        @definitions << full(node.name.to_s)
        super
      end

      def visit_constant_read_node(node) = refer(node.name.to_s, node)

      def visit_constant_path_node(node)
        return super unless constant?(node)

        node.slice.start_with?("::") ? @references << [[], node.slice.delete_prefix("::"), line(node)] : refer(node.slice, node)
      end

      def visit_call_node(node)
        @requires[[node.name, string(node, 0)]] = line(node) if LOADERS.include?(node.name) && string(node, 0)
        @requires[[:require, string(node, 1)]] = line(node) if node.name == :autoload && string(node, 1)
        hide(node) if node.name == :private_constant
        super
      end

      private

      def enter(constant)
        name = constant.slice.delete_prefix("::")
        @scopes.push(full(name))
        @definitions << @scopes.last
        yield
      ensure
        @scopes.pop
      end

      def hide(node)
        symbols = node.arguments&.arguments.to_a.grep(Prism::SymbolNode)
        symbols.each { |symbol| @private_definitions << full(symbol.unescaped) }
      end

      def constant?(node)
        node.is_a?(Prism::ConstantReadNode) || (node.is_a?(Prism::ConstantPathNode) && (node.parent.nil? || constant?(node.parent)))
      end

      def string(node, index)
        argument = node.arguments&.arguments&.at(index)
        argument.unescaped if argument.is_a?(Prism::StringNode)
      end

      def refer(name, node) = @references << [@scopes.dup, name, line(node)]
      def full(name) = [@scopes.last, name].compact.join("::")
      def line(node) = node.location.start_line
    end
    private_constant :Visitor
  end
end
