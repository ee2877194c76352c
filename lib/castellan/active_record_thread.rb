# frozen_string_literal: true

module Castellan
  # Reads what ActiveRecord and ActiveSupport keep for the current thread (or fiber) in one look.
  #
  #   ActiveRecordThread.connected_elsewhere?   # => true in a block of `connected_to`
  #   ActiveRecordThread.default?(Post)         # => false also in `Time.use_zone` and in a `scoping` of Post
  #
  # The public readers (`Time.zone`, `current_role`, `current_scope` …) find this state anew for each question, which is most of
  # what a cached response costs.
  module ActiveRecordThread
    STACK = :active_record_connected_to_stack
    SCOPES = :active_record_scope_registry
    HANDLER = :active_record_connection_handler
    private_constant :STACK, :SCOPES, :HANDLER

    module_function

    # @return [Boolean] whether the thread may use another role, shard or connection handler than a new thread
    def connected_elsewhere?
      state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state
      state ? elsewhere?(state) : false
    end

    # @param model [Class] of ActiveRecord
    # @return [Boolean] whether a query of the model returns what it returns in a new thread
    def default?(model)
      state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state or return true
      return false if state[:time_zone] || elsewhere?(state)

      scopes = state[SCOPES] or return true
      scopes.current_scope(model).nil? && scopes.global_current_scope(model).nil?
    end

    def elsewhere?(state)
      stack = state[STACK]
      return true unless stack.nil? || stack.empty?

      state[HANDLER] ? true : false
    end
    private_class_method :elsewhere?
  end
end
