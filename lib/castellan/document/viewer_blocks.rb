# frozen_string_literal: true

module Castellan
  class Document
    # Calls the blocks of `per_viewer` attributes with ids as the database has them: integers where the column holds integers, else
    # strings, even when the ids come from a store that holds text.
    #
    #   ViewerBlocks.for(plan, adapter)   # => [#call], one for each of plan.holes; made once per plan
    module ViewerBlocks
      module_function

      # @return [Array<#call>] see {Serialize::Output#fill}
      def for(plan, adapter)
        plan.derive(:viewer_blocks) do
          plan.nodes.flat_map do |node|
            column = node.definition.id_column
            integers = column.is_a?(Symbol) && adapter.related(node.definition.model).types.integer?(column)
            node.members.filter_map { |member| block(member.attribute, integers) if member.attribute.source == :viewer }
          end
        end
      end

      def block(attribute, integers)
        lambda do |ids, viewer|
          values = attribute.block.call(integers ? ids.map(&:to_i) : ids, viewer)
          unless values.respond_to?(:to_h) && !values.nil?
            raise ConfigurationError, "per_viewer #{attribute.name.inspect} must return ids or a Hash of id to value, " \
                                      "got #{values.class} (#{attribute.location})"
          end

          values.is_a?(Hash) ? values.transform_keys(&:to_s) : values.to_a
        end
      end
      private_class_method :block
    end
  end
end
