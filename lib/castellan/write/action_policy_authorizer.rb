# frozen_string_literal: true

require_relative "../errors"
Castellan::ConfigurationError.require_gem("action_policy", "Castellan::Write::ActionPolicyAuthorizer")

module Castellan
  module Write
    # Authorizes creates, updates and deletes with Action Policy.
    #
    #   class PostResource < Castellan::Resource
    #     authorize Castellan::Write::ActionPolicyAuthorizer
    #     scope { |posts, user| PostPolicy.new(user: user).apply_scope(posts, type: :active_record_relation) }   # what may be read
    #   end
    #
    # Calls `create?`, `update?` and `destroy?` of the record's policy, with the viewer as `user`. For
    # `create?` the record is new and has the client's attributes. Raises ActionPolicy::NotFound if the model
    # has no policy.
    module ActionPolicyAuthorizer
      PREDICATES = { create: :create?, update: :update?, delete: :destroy? }.freeze
      private_constant :PREDICATES

      # @param action [Symbol] :create, :update or :delete
      # @param viewer [Object, nil] the policy's user
      # @param record [Object]
      # @return [Boolean]
      def self.call(action, viewer, record)
        ::ActionPolicy.lookup(record).new(record, user: viewer).apply(PREDICATES.fetch(action))
      end
    end
  end
end
