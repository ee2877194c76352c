# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Identifies a dataset without building its SQL, like {ActiveRecordRows::ScopeIdentity}.
      #
      #   ScopeIdentity.of(viewer.posts_dataset, Post.dataset)           # => ["\0Post posts = posts viewer_id …", [7]]
      #   ScopeIdentity.of(Post.join(:viewers, id: :x), Post.dataset)    # => nil: its SQL must be built
      module ScopeIdentity
        extend Rows::Scopes::Identity

        MARK = Rows::Scopes::Identity::MARK
        KNOWN = %i[from model row_proc where order limit offset association_reflection model_object].freeze
        OPERATORS = %i[AND OR NOT = != > >= < <= IS IN].push(:"IS NOT", :"NOT IN").freeze
        METHODS = "Sequel::Model::Associations::AssociationDatasetMethods"
        private_constant :MARK, :KNOWN, :OPERATORS, :METHODS

        module_function

        # @param dataset [Sequel::Dataset]
        # @param own [Sequel::Dataset] the model's
        # @return [Array(String, Array), nil] shape and values; nil if the dataset has anything but conditions on columns,
        #   text conditions, an order and a limit, or methods of its own
        def of(dataset, own)
          return unless plain_class?(dataset.class, own.class)

          catch(:unknown) do
            opts = dataset.opts
            opts.each_key { |name| throw :unknown unless KNOWN.include?(name) }
            shape = "#{MARK}#{opts[:model]&.name}"
            bound = []
            opts[:from].each { |table| column(table, shape) }
            expression(opts[:where], shape, bound) if opts[:where]
            opts[:order]&.each { |term| order(term, shape) }
            %i[limit offset].each { |name| expression(opts[name], shape << " " << name.name, bound) if opts[name] }
            [shape, bound]
          end
        end

        # A dataset that is extended may write other SQL.
        def plain_class?(given, own)
          given.equal?(own) ||
            (given.superclass.equal?(own) && given.ancestors[1].name == METHODS && given.ancestors[2].equal?(own))
        end

        def expression(node, shape, bound)
          case node
          when ::Sequel::SQL::BooleanExpression then operation(node, shape, bound)
          when ::Sequel::LiteralString then text(node, shape)
          when Integer, String, true, false, nil then value(node, bound) && shape << " ?"
          when Array
            shape << " ["
            node.each { |inner| expression(inner, shape, bound) }
            bound << node.size
          when ::Sequel::SQL::PlaceholderLiteralString
            text(node.str, shape << (node.parens ? " (" : " "))
            expression(node.args, shape, bound)
          else column(node, shape)
          end
        end

        def operation(node, shape, bound)
          throw :unknown unless OPERATORS.include?(node.op)

          shape << " (" << node.op.name
          node.args.each { |argument| expression(argument, shape, bound) }
          shape << ")"
        end

        def order(term, shape)
          return text(term, shape) if term.is_a?(::Sequel::LiteralString)
          return column(term, shape) unless term.is_a?(::Sequel::SQL::OrderedExpression)

          column(term.expression, shape << (term.descending ? " desc " : " asc ") << term.nulls.to_s)
        end

        def column(node, shape)
          case node
          when Symbol then shape << MARK << node.name
          when ::Sequel::SQL::Identifier then shape << MARK << "identifier" << MARK << node.value.to_s
          when ::Sequel::SQL::QualifiedIdentifier
            shape << MARK << "of"
            [node.table, node.column].each { |part| part.instance_of?(String) ? text(part, shape) : column(part, shape) }
          else throw :unknown
          end
        end
        private_class_method :plain_class?, :expression, :operation, :order, :column
      end
    end
  end
end
