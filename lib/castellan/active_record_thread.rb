# frozen_string_literal: true

module Castellan
  # Reads ActiveRecord's and ActiveSupport's state of the thread (or fiber) with a single lookup.
  #
  #   ActiveRecordThread.connected_elsewhere?   # => true in a block of `connected_to`
  #   ActiveRecordThread.default?(Post)         # => false also inside `Time.use_zone` and a `scoping` of Post
  #
  # The public readers (`Time.zone`, `current_role`, `current_scope` …) look up this state on each call, which
  # would be most of the time of a cached response.
  module ActiveRecordThread
    STACK = :active_record_connected_to_stack
    SCOPES = :active_record_scope_registry
    HANDLER = :active_record_connection_handler
    SEARCH_PATH = '"$user", public' # PostgreSQL's default
    private_constant :STACK, :SCOPES, :HANDLER, :SEARCH_PATH

    module_function

    # @return [Boolean] whether the thread may use a role, shard or connection handler other than the default
    def connected_elsewhere?
      state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state
      state ? elsewhere?(state) : false
    end

    # @param model [Class] an ActiveRecord model
    # @param own [Boolean] whether it inherits no scope
    # @return [Boolean] whether a query of the model returns the same as in a new thread
    def default?(model, own = model.base_class?)
      state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state or return true
      return false if state[:time_zone] || elsewhere?(state)

      scopes = state[SCOPES] or return true
      return true if unscoped?(scopes)

      !associations_scoped?(state) && scopes.current_scope(model, own).nil? && scopes.global_current_scope(model, own).nil?
    end

    # There, associations have further conditions or no default scope, also those whose statements are otherwise the
    # same in every request.
    # @return [Boolean] whether the thread is in a block of `scoping(all_queries: true)` or `unscoped` of any model
    def associations_scoped?(state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state)
      scopes = state && state[SCOPES] or return false
      return true if scopes.instance_variable_get(:@global_current_scope)&.values&.any?

      current = scopes.instance_variable_get(:@current_scope)&.values # nil for each model whose block has ended
      current&.any? ? current.any? { |scope| scope&.empty_scope? } : false
    end

    # @return [Hash{String => Array}] the columns that blocks of `scoping(all_queries: true)` compare or `unscope`, by model
    def scoped_columns
      found = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state[SCOPES]
      found.instance_variable_get(:@global_current_scope).compact.transform_values do |scope|
        compared = scope.where_clause.extract_attributes # of where_values_hash only those of `=` and IN
        compared.grep(::Arel::Attribute).map { |attribute| attribute.name.to_s }.uniq + scope.unscope_values
      end
    end

    # ActiveRecord also remembers the first search path of a connection, for example when it prepares a statement.
    # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
    # @param connection [Object, nil] one of its connections
    # @return [String, nil] the connection's search path as set by `schema_search_path=`; nil for that of database.yml
    #   or PostgreSQL's default
    def changed_search_path(pool, connection)
      path = connection&.instance_variable_get(:@schema_search_path)&.to_s or return # a Symbol is possible
      config = pool.db_config.configuration_hash
      first = config[:schema_search_path] || config[:schema_order] || SEARCH_PATH
      path unless path == first || schemas(path) == schemas(first.to_s)
    end

    # PostgreSQL writes a space after each comma.
    def schemas(path) = path.split(",").map(&:strip)
    private_class_method :schemas

    # Clears the thread's query caches, between the reading of a version and of the rows that are cached under
    # it. A request that has read rows before another one changed them would else cache the old rows under the
    # new version.
    def clear_query_caches
      ::ActiveRecord::Base.clear_query_caches_for_current_thread if defined?(::ActiveRecord::Base)
    end

    def elsewhere?(state)
      stack = state[STACK]
      return true unless stack.nil? || stack.empty?

      state[HANDLER] ? true : false
    end
    private_class_method :elsewhere?

    # @return [Boolean] whether the thread is in no block of `scoping` or `unscoped` of any model
    def unscoped?(scopes)
      current = scopes.instance_variable_get(:@current_scope)
      global = scopes.instance_variable_get(:@global_current_scope)
      current && global ? (current.empty? || current.values.none?) && (global.empty? || global.values.none?) : false
    end
    private_class_method :unscoped?
  end
end
