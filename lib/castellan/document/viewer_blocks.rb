# frozen_string_literal: true

module Castellan
  class Document
    # Calls the blocks of `per_viewer` attributes with ids as the database has them: integers where the column holds integers, else
    # strings, even when the ids come from a store that holds text.
    #
    #   ViewerBlocks.for(plan, adapter)      # => [#call], one for each of plan.holes; made once per plan
    #   ViewerBlocks.versions(plan, viewer)  # => [["User", 7], 12]: on which the values depend, if every attribute declares `version:`
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

      # Contains the viewer's class and id, so that two viewers never have one version.
      # @return [Array, nil] parts of a key; nil where the values must be compared, because an attribute declares no version or the
      #   viewer has no id
      # @raise [ConfigurationError]
      def versions(plan, viewer)
        return unless plan.holes.all?(&:version)

        identity = identity(viewer)
        identity && [identity, *plan.holes.map { |attribute| version(attribute, viewer) }]
      end

      def identity(viewer)
        id = viewer.respond_to?(:id) ? viewer.id : viewer
        [viewer.class.name, CustomCode.part(id)] if viewer.nil? || (viewer.class.name && !id.nil?)
      rescue CustomCode::Refused
        nil
      end

      def version(attribute, viewer)
        CustomCode.part(attribute.version.call(viewer))
      rescue CustomCode::Refused => error
        raise ConfigurationError, "version: of per_viewer #{attribute.name.inspect} must return strings, symbols, numbers, times, " \
                                  "booleans, nil or arrays of them, got #{error.message} (#{attribute.location})"
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
      private_class_method :identity, :version, :block
    end
  end
end
