# frozen_string_literal: true

module Castellan
  class Document
    # Finds the application's Ruby code that a plan runs, and the members whose code prevents caching.
    #
    #   code = CustomCode.new(plan, adapter)
    #   code.obstacles              # => ["PostResource attribute :title: its block may read more …"]
    #   code.surroundings(viewer)   # => ["en", ["UTC", 0], ["text", "admin"]], a part of the cache key
    #
    # Such code is a block of an attribute, link, meta object or condition, a reader or callback of the model,
    # and a column type that is not the ORM's. It may read anything (`Current.user`, the clock, a global), so
    # its document is cached only if the declaration says `pure`, or lists what the code reads with `vary_on`.
    class CustomCode
      BLOCK = "may read more than its columns"
      WRITE = "write pure: true there if it does not, or name what it reads with vary_on { |viewer| [viewer&.role] }"
      RECORD = "name what it reads with columns:, or write pure: true there if it reads nothing but the record's own columns"
      READER = "write pure: true there if it reads nothing but the record's own columns"
      VIEWER = "name what it reads with vary_on { |viewer| [viewer&.role] }"
      # These coders write a column in the same way in every time zone.
      ZONELESS = %i[integer text boolean float decimal date json].freeze
      ZONES = BoundedCache.new # Time.zone returns the same object for the same name
      private_constant :BLOCK, :WRITE, :RECORD, :READER, :VIEWER, :ZONELESS, :ZONES

      # Raised for a value that cannot be part of a cache key.
      class Refused < StandardError
      end

      # Marks every value except nil, booleans and integers with its kind, so that :a, "a" and ["a"] differ.
      # @return [Object] the value as a part of a cache key
      # @raise [Refused] for other classes, whose values may have equal strings
      def self.part(value)
        case value
        when nil, true, false, Integer then value
        when String then ["text", value.frozen? ? value : value.dup]
        when Symbol then ["symbol", value.name]
        when Float, Rational then [value.class.name, value.to_s]
        when Time then ["time", value.to_r.to_s, value.utc_offset, value.zone.to_s]
        when Array then ["list", value.map { |inner| part(inner) }]
        else
          raise Refused, "#{value.class}: #{value.inspect[0, 60]}" unless defined?(::BigDecimal) && value.is_a?(::BigDecimal)

          ["BigDecimal", value.to_s]
        end
      end

      # @return [String, nil] the request's, as a part of a cache key
      def self.locale
        I18n.locale.to_s if defined?(::I18n)
      end

      # @return [Array, nil] the request's time zone, as a part of a cache key
      def self.zone
        zone = Time.zone if Time.respond_to?(:zone)
        own = ZONES.fetch(zone) { [zone.name, zone.tzinfo.name, zone.utc_offset].freeze } if zone
        defined?(::Sequel::Timezones) ? [own, ::Sequel.application_timezone.to_s, ENV.fetch("TZ", nil)] : own
      end

      # @return [Array<String>] for each member that prevents caching: its name,
      #   location, and what to write instead
      attr_reader :obstacles

      def initialize(plan, adapter)
        @obstacles = []
        @zoned = @any = @records = false
        plan.nodes.each do |node|
          at = adapter.related(node.definition.model)
          visit(node, at) if at.model
        end
        @obstacles.uniq!
        @varying = plan.nodes.map(&:definition).uniq.select(&:variation).freeze
        @surrounded = @any || @zoned || @varying.any?
        freeze
      end

      # @return [Boolean] whether code may read tables that the plan does not
      #   contain: it takes records and is not pure
      def reads_records?
        @records
      end

      # @return [Array, nil] what the code reads besides columns, as parts of
      #   a cache key; nil without such code
      # @raise [ConfigurationError] if a block of `vary_on` returns a value that cannot be part of a cache key
      def surroundings(viewer)
        return unless @surrounded

        [(CustomCode.locale if @any), (CustomCode.zone if @any || @zoned), *@varying.map { |definition| variation(definition, viewer) }]
      end

      private

      def visit(node, adapter)
        @zoned ||= node.columns.any? { |column| zoned?(column, adapter) }
        node.members.each { |member| attribute(node, member, adapter) unless member.attribute.source == :viewer }
        node.asides.each { |aside| aside(node, aside, adapter) }
      end

      def attribute(node, member, adapter)
        attribute = member.attribute
        name = "attribute #{attribute.name.inspect}"
        pure = pure?(node, attribute)
        block(node, name, attribute, pure) if attribute.block
        member.positions.each do |position|
          column(node, name, node.columns[position], adapter, pure, attribute.location, as_stored: attribute.as_stored)
        end
      end

      def aside(node, aside, adapter)
        computed = aside.computed
        pure = pure?(node, computed)
        block(node, label(aside), computed, pure) if computed.code
        aside.positions.each { |position| column(node, label(aside), node.columns[position], adapter, pure, computed.location) }
      end

      # The member's declaration takes precedence over its resource's.
      def pure?(node, code)
        code.pure.nil? ? node.definition.pure? : code.pure
      end

      def block(node, name, code, pure)
        @any = true
        @records ||= code.columns.nil? && !pure
        varied = node.definition.variation
        if Rows::ComputedMembers::Blocks.takes_viewer?(code.block) && !varied
          obstacle(node, name, "its block takes the viewer", code.location, VIEWER)
        elsif code.columns.nil? && !pure
          obstacle(node, name, "its block gets the whole record", code.location, RECORD)
        elsif !pure && !varied
          obstacle(node, name, "its block #{BLOCK}", code.location, WRITE)
        end
      end

      def column(node, name, column, adapter, pure, location, as_stored: false)
        at = adapter_at(adapter, column.path)
        return unless at&.columns&.include?(column.name)

        if !as_stored && at.types.needs_record?(column.name)
          @any = true
          @records ||= !pure
          obstacle(node, name, "#{at.model} reads #{column.name} by a method or a callback of its own", location, READER) unless pure
        elsif (type = at.types.custom_type(column.name))
          @any = true
          obstacle(node, name, "#{type}, the type of #{column.name}, #{BLOCK}", location, WRITE) unless pure || node.definition.variation
        end
      end

      def obstacle(node, name, what, location, advice)
        @obstacles << "#{node.definition.name} #{name}: #{what} (#{location}): #{advice}"
      end

      def label(aside)
        name = Array(aside.name).last&.inspect
        case aside.kind
        when :attribute_if then "attribute #{name}, if:"
        when :edge_if then "#{aside.owner.inspect}, if:"
        when :edge_link then "#{aside.owner.inspect}, link #{name}"
        when :edge_meta then "#{aside.owner.inspect}, meta"
        else [aside.kind.name, name].compact.join(" ")
        end
      end

      def zoned?(column, adapter)
        at = adapter_at(adapter, column.path)
        return true unless at && column.name.is_a?(Symbol) && at.columns.include?(column.name)

        !ZONELESS.include?(at.types.coder(column.name))
      end

      # @return [Object, nil] nil if rows cannot follow the path, so that its tables are unknown
      def adapter_at(adapter, path)
        Rows::ModelReasons.broken_path(adapter, path) ? nil : adapter.at(path)
      end

      def variation(definition, viewer)
        block = definition.variation
        CustomCode.part(block.arity.zero? ? block.call : block.call(viewer))
      rescue Refused => error
        raise ConfigurationError, "vary_on of #{definition.name} must return strings, symbols, numbers, times, booleans, nil or arrays " \
                                  "of them, got #{error.message} (#{block.source_location&.join(":")})"
      end
    end
  end
end
