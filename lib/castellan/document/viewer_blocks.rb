# frozen_string_literal: true

module Castellan
  class Document
    # Calls the blocks of `per_viewer` attributes with ids of the column's type: Integers or Strings.
    #
    #   ViewerBlocks.for(plan, adapter)      # => [#call], one for each of plan.holes; built once per plan
    #   ViewerBlocks.versions(plan, viewer) { |table, column, id| … }   # => [["User", 7, "en", nil], 12]
    #
    # Also converts ids from a store, which are always strings.
    module ViewerBlocks
      module_function

      # @return [Array<#call>] see {Serialize::Output#fill}
      def for(plan, adapter)
        plan.derive(:viewer_blocks) do
          plan.nodes.flat_map do |node|
            column = node.definition.id_column
            integers = column.is_a?(Symbol) && adapter.related(node.definition.model).types.integer?(column)
            node.members.filter_map do |member|
              next unless member.attribute.source == :viewer

              block(member.attribute, integers) { |ids, values| texts(ids, values, adapter, node, member.attribute.key) }
            end
          end
        end
      end

      # Contains {identity}, so that two viewers never have the same version.
      # @yieldparam table [String, Symbol] the table of `version:`
      # @yieldparam column [String, Symbol, nil] the column of the viewer's id; nil: the whole table
      # @yieldparam id [Object, nil] the viewer's id
      # @yieldreturn [String, nil] the version
      # @return [Array, nil] parts of a cache key. nil if the values themselves must be compared: an attribute
      #   declares no version, the version of a table cannot be read, or the viewer has no id
      # @raise [ConfigurationError]
      def versions(plan, viewer, &of_table)
        return unless plan.holes.all?(&:version) && (identity = identity(viewer))

        found = plan.holes.map do |attribute|
          declared = attribute.version
          next version(attribute, viewer) if declared.respond_to?(:call)

          table, column = declared.is_a?(Hash) ? declared.first : declared
          of_table.call(table, column, id(viewer)) || :unknown
        end
        [identity, *found] unless found.include?(:unknown)
      end

      # @return [Array<String, Symbol>, nil] the tables on whose versions the values depend besides the viewer; nil if
      #   they depend on something else
      def tables(plan)
        declared = plan.holes.map(&:version)
        declared unless declared.empty? || declared.any? { |version| version.nil? || version.is_a?(Hash) || version.respond_to?(:call) }
      end

      # @return [Array<String>] the tables that `version:` of the attributes names
      def declared_tables(plan)
        plan.holes.map(&:version).filter_map { |version|
          (version.is_a?(Hash) ? version.each_key.first : version)&.to_s unless version.respond_to?(:call)
        }.uniq
      end

      # @return [Array, nil] the viewer's class and id, and the locale and time zone, which a block may read; nil
      #   without an id that can be part of a cache key
      def identity(viewer)
        id = id(viewer)
        [viewer.class.name, CustomCode.part(id), CustomCode.locale, CustomCode.zone] if viewer.nil? || (viewer.class.name && !id.nil?)
      rescue CustomCode::Refused
        nil
      end

      def id(viewer) = viewer.respond_to?(:id) ? viewer.id : viewer

      def version(attribute, viewer)
        CustomCode.part(attribute.version.call(viewer))
      rescue CustomCode::Refused => error
        raise ConfigurationError, "version: of per_viewer #{attribute.name.inspect} must return strings, symbols, numbers, times, " \
                                  "booleans, nil or arrays of them, got #{error.message} (#{attribute.location})"
      end

      # @yield ids and the block's Hash
      # @yieldreturn [Hash{String => String}]
      def block(attribute, integers)
        lambda do |ids, viewer|
          values = attribute.block.call(integers ? ids.map(&:to_i) : ids, viewer)
          refuse(attribute, values.class) unless values.respond_to?(:to_h) && !values.nil?
          next yield(ids, values.transform_keys(&:to_s)) if values.is_a?(Hash)

          values.to_a.each { |id| refuse(attribute, "#{id.class} instances: write pluck") if id.is_a?(Array) || id.respond_to?(:reload) }
        end
      end

      # The adapter writes times and decimals in the same way as attributes.
      # @return [Hash{String => String}] JSON of each id, in binary
      def texts(ids, values, adapter, node, member)
        texts = Rows::JSONValue.texts(ids.map { |id| values[id] }, adapter, node, member) { |row| ids[row] }
        # Escaped all at once, which is faster than one by one; JSON contains no NUL.
        escaped = Serialize::Text.for(Serialize.escape).append_json(+"", texts.join("\0"))
        ids.zip(escaped.b.split("\0", -1)).to_h
      end

      def refuse(attribute, got)
        raise ConfigurationError, "per_viewer #{attribute.name.inspect} must return ids or a Hash of id to value, got #{got} " \
                                  "(#{attribute.location})"
      end
      private_class_method :id, :version, :block, :texts, :refuse
    end
  end
end
