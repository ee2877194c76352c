# frozen_string_literal: true

require_relative "../errors"
Castellan::ConfigurationError.require_gem("pundit", "Castellan::Write::PunditAuthorizer")

module Castellan
  module Write
    # Authorizes creates, updates and deletes with Pundit.
    #
    #   class PostResource < Castellan::Resource
    #     authorize Castellan::Write::PunditAuthorizer
    #     scope { |posts, user| Pundit.policy_scope!(user, posts) }   # what may be read
    #   end
    #
    # Calls `create?`, `update?` and `destroy?` of the record's policy. For `create?` the record is new and
    # has the client's attributes. Raises Pundit::NotDefinedError if the model has no policy.
    module PunditAuthorizer
      PREDICATES = { create: :create?, update: :update?, delete: :destroy? }.freeze
      private_constant :PREDICATES

      # @param action [Symbol] :create, :update or :delete
      # @param viewer [Object, nil] Pundit's user
      # @param record [Object]
      # @return [Boolean]
      def self.call(action, viewer, record)
        ::Pundit.policy!(viewer, record).public_send(PREDICATES.fetch(action))
      end
    end
  end
end
