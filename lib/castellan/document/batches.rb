# frozen_string_literal: true

module Castellan
  class Document
    # The blocks of the per-viewer attributes, each called with ids as the database has them: whole numbers where the column holds
    # such, text otherwise, also when the bytes come out of a store that knows text only.
    #
    #   Batches.of(plan, adapter)   # => [#call], one for each of plan.holes; made once a plan
    module Batches
      module_function

      # @return [Array<#call>] see {Serialize::Output#fill}
      def of(plan, adapter)
        plan.derive(:batches) do
          plan.nodes.flat_map do |node|
            column = node.definition.id_column
            integers = column.is_a?(Symbol) && adapter.related(node.definition.model).integer?(column)
            node.members.filter_map { |member| batch(member.attribute, integers) if member.attribute.source == :viewer }
          end
        end
      end

      def batch(attribute, integers)
        lambda do |ids, viewer|
          answer = attribute.block.call(integers ? ids.map(&:to_i) : ids, viewer)
          unless answer.respond_to?(:to_h) && !answer.nil?
            raise ConfigurationError, "per_viewer #{attribute.name.inspect} must return ids or a Hash of id to value, " \
                                      "got #{answer.class} (#{attribute.location})"
          end

          answer.is_a?(Hash) ? answer.transform_keys(&:to_s) : answer.to_a
        end
      end
      private_class_method :batch
    end
  end
end
