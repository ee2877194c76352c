# frozen_string_literal: true

module Castellan
  class Resource
    # Holds what {Resource.writable}, {Resource.deletable} and {Resource.authorize} declare. Frozen.
    class Writing
      # Writable members, the actions for which they are writable, a block that takes the viewer, and the declaring resource.
      Rule = Struct.new(:names, :actions, :condition, :resource)
      # An action, and the block or authorizer that allows it.
      Policy = Struct.new(:action, :block, :authorizer)
      ACTIONS = %i[create update].freeze
      ALL = %i[create update delete].freeze
      private_constant :Rule, :Policy

      NOTHING = [].freeze
      TITLE = "Forbidden"
      private_constant :NOTHING, :TITLE

      # @return [Array<Rule>] one for each `writable`
      attr_reader :rules

      def initialize(rules: NOTHING, policies: NOTHING, deletable: nil, conditional: false)
        @rules = rules
        @policies = policies
        @deletable = deletable
        @conditional = conditional
        freeze
      end

      # @return [Writing] with one more rule, which replaces those that the resource inherits for these names
      def with_names(names, actions, condition, resource)
        kept = @rules.filter_map do |rule|
          next rule if rule.resource.equal?(resource)

          left = rule.names - names
          Rule.new(left.freeze, *rule.to_a.drop(1)).freeze if left.any?
        end
        with(rules: [*kept, Rule.new(names, actions, condition, resource).freeze].freeze)
      end

      # @param authorizer [#call, nil] called instead of the block, with the action, the viewer and the record
      # @return [Writing] with one more policy for each action
      def with_policy(actions, block, authorizer = nil)
        with(policies: [*@policies, *actions.map { |action| Policy.new(action, block, authorizer).freeze }].freeze)
      end

      # @param changes [Hash] see {#initialize}
      # @return [Writing] a copy
      def with(**changes)
        Writing.new(rules: @rules, policies: @policies, deletable: @deletable, conditional: @conditional, **changes)
      end

      # @return [Boolean] whether changes require If-Match
      def conditional?
        @conditional
      end

      # @return [Array<Symbol>] all names that any viewer may write
      def all_names
        @rules.flat_map(&:names).uniq
      end

      # @param action [Symbol] :create or :update
      # @return [Array<Symbol>] the members that this viewer may write
      def names(action, viewer)
        @rules.select { |rule|
          rule.actions.include?(action) && (rule.condition.nil? || rule.condition.call(viewer))
        }.flat_map(&:names).uniq
      end

      # @param action [Symbol] :create, :update or :delete
      # @return [Boolean] whether any viewer may do it
      def any?(action)
        action == :delete ? !@deletable.nil? : @rules.any? { |rule| rule.actions.include?(action) }
      end

      # @return [Boolean] whether any viewer may change or delete a record
      def changes?
        any?(:update) || any?(:delete)
      end

      def creates?(viewer)
        names(:create, viewer).any?
      end

      def deletes?(viewer, record)
        @deletable&.call(viewer, record) ? true : false
      end

      # @param values [Hash{Symbol => Object}] the values that will be written
      # @yieldreturn [Object] a new record with the values, for `:create`
      # @return [Boolean] whether every policy of the action allows it
      def authorized?(action, viewer, record, values)
        @policies.all? do |policy|
          next true if policy.action != action
          next policy.authorizer.call(action, viewer, record || yield) if policy.authorizer

          policy.block.call(viewer, record, values)
        end
      end

      # @raise [BadRequest] with status 403
      def refuse(action, definition, relationship = nil)
        what = relationship ? "the relationship #{relationship.key} of #{definition.type}" : definition.type
        raise BadRequest.new("you may not #{action} #{what}", status: 403, title: TITLE)
      end
    end
  end
end
