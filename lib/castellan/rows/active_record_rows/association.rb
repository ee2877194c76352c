# frozen_string_literal: true

require "ripper"

module Castellan
  module Rows
    class ActiveRecordRows
      # Describes how one association of an ActiveRecord model is read as rows. Frozen.
      class Association < Rows::Association
        # SQLite accepts text in integer columns and sorts all text after all numbers.
        LARGEST = ::Arel.sql(((2**63) - 1).to_s).freeze
        private_constant :LARGEST

        def initialize(owner, reflection)
          @owner = owner
          @reflection = reflection
          @name = reflection.name
          @macro = reflection.macro
          @model = reflection.klass unless reflection.polymorphic?
          @owner_key = single_key
          @reason = find_reason
          freeze
        end

        # (see Rows::Association#reason)
        def reason = @reason || ("scoping(all_queries: true) replaces the condition on its key" if key_replaced?)

        # (see Rows::Association#reason_for)
        def reason_for(relationship) = declared_anew? ? "a class of its table declares it anew" : super
        def to_many? = @reflection.collection?

        # @return [LazyStatement]
        def lazy = statement(scope_of_owner)

        # (see Rows::Association#links)
        def links(id, read: false)
          (joined_links(id, read) if to_many? && @reflection.through_reflection?) || super
        end

        # @return [LazyStatement] selects the related rows whose integer column holds an integer
        def lazy_where_present(column)
          present = @owner.dialect.name == :sqlite ? model.arel_table[column].lteq(LARGEST) : model.arel_table[column].not_eq(nil)
          statement(scope_of_owner.where(present))
        end

        # @return [Boolean] whether the SQL is the same in every request: all scopes are constant, default scopes as well
        def stable?
          steady?(->(model) { !ActiveRecordRows.fixed?(model) }) { |scope| scope.nil? || ConstantScope.constant?(scope) }
        end

        # (see Rows::Association#identity)
        def identity
          return if ActiveRecordThread.associations_scoped?

          untyped, typed = steps.partition(&:polymorphic?)
          found = typed.map(&:klass).uniq.map { |model| of_model(model) } + typed.map { |step| of_scope(step) }
          found unless found.include?(nil) || untyped.any?(&:scope) || !Scopes::Identity.small?(found)
        rescue StandardError
          nil # the scope raises when the SQL is built, too
        end

        # @return [Boolean] whether the association is a has_many without :through
        def direct? = !@reflection.through_reflection? && macro == :has_many

        # @param id [Symbol] the related resource's id column
        # @return [Boolean] whether the owner's foreign key is that id; false with a default scope
        def foreign_key_of?(id) = macro == :belongs_to && unscoped? && @reflection.association_primary_key == id.to_s

        # (see Rows::Association#indexed?)
        def indexed?
          found = @reflection.chain.last
          key = found.join_primary_key
          !key.is_a?(Array) && @owner.related(found.klass).types.indexed?(key)
        end

        # @return [Symbol, nil] the type column of a polymorphic belongs_to
        def type_column
          @reflection.foreign_type.to_sym if @reflection.polymorphic?
        end

        # @return [Array<Symbol>] the columns of a belongs_to, with {#type_column}
        def foreign_keys = [*@reflection.foreign_key, *type_column].map(&:to_sym)

        # @param kind [Class, String] a model, or a value of {#type_column}
        # @return [String]
        def type_name(kind) = kind.is_a?(Class) ? kind.polymorphic_name : kind.to_s

        private

        def reason_for_several(relationship)
          return super unless @reflection.polymorphic?
          return "its key has several columns" if owner_key.nil?
          return "its scope takes part" if @reflection.scope
          return "#{type_column} names the class above its types" if relationship.definitions.any? { |one| of_part?(one.model) }

          other = relationship.definitions.find { |definition| definition.model.nil? || !own_key?(definition) }
          "#{other.type} is identified by something else than what #{owner_key} holds" if other
        end

        # All classes of an STI table are stored under the base class's name.
        def of_part?(model) = model.is_a?(Class) && model < ::ActiveRecord::Base && model.finder_needs_type_condition?

        def declared_anew?
          ActiveRecordRows.subclasses(@owner.model).any? { |klass| !klass.reflect_on_association(name).equal?(@reflection) }
        end

        def own_key?(definition)
          (@reflection.options[:primary_key] || definition.model.primary_key).to_s == definition.id_column.to_s
        end

        # Reads the ids from the join table alone if a foreign key guarantees that the related rows
        # exist (SQLite enforces foreign keys only on connections that enable them), or if the related
        # rows are read as well, by primary key.
        def joined_links(id, read)
          source = @reflection.source_reflection
          join = @owner.association(@reflection.through_reflection.name)
          return unless unscoped? && join.direct? && source.macro == :belongs_to && !source.polymorphic?
          return unless source.association_primary_key == id.to_s && ActiveRecordRows.comparable_keys?(join.model, source)

          key = source.foreign_key.to_s
          sure = @owner.dialect.name == :postgres && join.adapter.types.references?(key, model.table_name, id.to_s)
          [join.lazy_where_present(key), join.adapter.types.qualified(key), !sure] if sure || (read && integers?(join.adapter, key, id))
        end

        def integers?(join, key, id)
          id.to_s == model.primary_key && adapter.types.integer?(id) && join.types.integer?(key)
        end

        def scope_of_owner
          columns = @owner.model.column_names.to_h { |column| [column, nil] }
          @owner.model.instantiate(columns.merge(owner_key.to_s => OwnerKey.value(owner_key_type))).association(name).scope
        end

        def statement(relation)
          LazyStatement.new(adapter.scopes, relation.except(:includes, :preload, :eager_load), keys_in_order)
        end

        def owner_key_type = @owner.model.type_for_attribute(owner_key.to_s).type

        # ActiveRecord merges the relation of the block into that of the association.
        def key_replaced?
          model&.global_current_scope ? !OwnerKey.in?(scope_of_owner.to_sql) : false
        end

        def keys_in_order
          [through_model, model].map { |klass| klass.arel_table[klass.primary_key] if klass&.primary_key.is_a?(String) }
        end

        # Returns the model joined last, but not the related model, whose table has an alias in the statement.
        def through_model
          return unless @reflection.through_reflection?

          joined = @reflection.through_reflection.klass
          joined unless joined.table_name == model.table_name || @reflection.through_reflection.through_reflection?
        end

        def unscoped? = steady?(ActiveRecordRows.method(:hides_rows?), &:nil?)

        def steps(reflection = @reflection)
          return [reflection] unless reflection.through_reflection?

          [reflection, *steps(reflection.through_reflection), *steps(reflection.source_reflection)]
        end

        def steady?(changes)
          return false if ActiveRecordThread.associations_scoped?

          steps.all? { |step| yield(step.scope) && (step.polymorphic? || !changes.call(step.klass)) }
        end

        def of_model(model)
          return true unless ActiveRecordRows.hides_rows?(model)

          Scopes::ScopeIdentity.of(model.default_scoped) unless ActiveRecordRows.rewritten?(model)
        end

        def of_scope(step)
          return true if step.scope.nil? || ConstantScope.constant?(step.scope)

          all = step.klass.unscoped
          Scopes::ScopeIdentity.of(all.instance_exec(&step.scope) || all)
        end

        def single_key
          key = @reflection.polymorphic? ? @reflection.foreign_key : @reflection.chain.last.join_foreign_key
          key.to_sym unless key.is_a?(Array)
        end

        def find_reason
          if @owner.dialect.reason then @owner.dialect.reason
          elsif @reflection.polymorphic? then "a polymorphic belongs_to has no one table"
          elsif adapter.dialect.reason then adapter.dialect.reason # the related model is in another database
          elsif keys.any?(Array) then "its key has several columns"
          elsif scopes.any? { |scope| scope.arity != 0 } then "its scope takes the owner"
          elsif @reflection.options[:disable_joins] then "disable_joins: true makes several statements of it"
          elsif OwnerKey.value(owner_key_type).nil? then "the type of #{owner_key} (#{owner_key_type}) cannot be a key here"
          elsif !ActiveRecordRows.comparable_keys?(@owner.model, @reflection.chain.last)
            "#{owner_key} and the column that is compared with it are of different types, or of a type or collation in which " \
              "different texts can be equal"
          else
            reason_of_scope
          end
        end

        def reason_of_scope
          return if scopes.empty?

          relation = scope_of_owner
          if adapter.scopes.expressions?(relation) then "its scope selects something else than columns"
          elsif relation.from_clause.value then "its scope has a FROM of its own"
          elsif relation.eager_loading? then "its scope loads other records in one statement with its own"
          elsif !to_many? && relation.distinct_value && relation.offset_value then "its scope has DISTINCT with OFFSET"
          end
        rescue StandardError
          nil # the scope needs something that exists only during a request
        end

        def keys
          steps.reject(&:through_reflection?)
               .flat_map { |step| step.polymorphic? ? [step.foreign_key] : [step.join_primary_key, step.join_foreign_key] }
        end

        def scopes = steps.filter_map(&:scope)

        # Detects scopes of associations and default scopes whose SQL is the same in every request, so that it can be
        # generated once.
        #
        #   has_many :roles, -> { order(:id) }                       # constant
        #   has_many :roles, -> { where("sent_at < ?", Time.now) }   # evaluated in every request
        #   default_scope { where(deleted_at: nil) }                 # constant
        #
        # A scope is constant if its source is a `-> { … }` or `default_scope { … }` that calls only the query methods
        # below, with literals. All others, and those in files that changed after this process started, are evaluated in
        # every request, which costs microseconds.
        module ConstantScope
          METHODS = %w[order reorder reverse_order where not rewhere unscope limit distinct].freeze
          STRUCTURE = %i[method_add_arg call fcall vcall command arg_paren args_add_block bare_assoc_hash hash assoclist_from_args
                         array symbol_literal symbol dyna_symbol string_literal string_concat string_content bodystmt void_stmt unary
                         var_ref -@ @int @float @tstring_content @label @period @op].freeze
          START = /->|\bdefault_scope\s*(?=\{|do\b)/
          END_OF_BLOCK = /\}|\bend\b/
          WRAPPER = "active_record/associations/builder/association.rb"
          STARTED = Time.now
          # A lambda with more closing braces and ends is evaluated in every request.
          MOST_ENDS = 20
          RESULTS = BoundedCache.new(limit: 500)
          private_constant :METHODS, :STRUCTURE, :START, :END_OF_BLOCK, :WRAPPER, :STARTED, :MOST_ENDS, :RESULTS

          module_function

          # @param scope [Proc, Object] the scope of an association's reflection, or a default scope
          # @return [Boolean]
          def constant?(scope)
            path, line = written(scope).source_location if scope.is_a?(Proc)
            return false unless path && File.file?(path) && File.mtime(path) < STARTED

            RESULTS.fetch([path, line]) { written_constant?(path, line) ? :constant : :changing } == :constant
          end

          def written_constant?(path, line)
            text = File.read(path, encoding: "UTF-8").scrub.lines.drop(line - 1)
            ends = text.first.to_s.enum_for(:scan, START).map { Regexp.last_match.end(0) }
            ends.any? && ends.all? { |start| harmless_lambda?("->#{text.join[start..]}") }
          end

          # Rails wraps a scope without arguments in a block whose local variable `scope` is the original.
          def written(scope)
            binding = scope.binding
            inner = binding.local_variable_defined?(:scope) && binding.local_variable_get(:scope)
            inner.is_a?(Proc) && scope.source_location&.first.to_s.end_with?(WRAPPER) ? inner : scope
          rescue ArgumentError # the scope is a method
            scope
          end

          # The lambda ends at the first brace or `end` up to which Ruby can parse the text.
          def harmless_lambda?(text)
            ends = text.enum_for(:scan, END_OF_BLOCK).lazy.map { Regexp.last_match.end(0) }.first(MOST_ENDS)
            ends.each do |last|
              _, ((type, _, body), *others) = Ripper.sexp(text[0...last])
              return type == :lambda && others.empty? && harmless?(body) if type
            end
            false
          end

          def harmless?(node)
            return true unless node.is_a?(Array) && node.any?
            return node.all? { |inner| harmless?(inner) } unless node.first.is_a?(Symbol)

            case node.first
            when :@ident then METHODS.include?(node[1])
            when :@kw then %w[nil true false].include?(node[1])
            when :symbol then true
            when :assoc_new then !node[2].nil? && harmless?(node.drop(1)) # where(tenant_id:) calls tenant_id
            when :var_ref then node[1].first == :@kw && harmless?(node[1])
            else STRUCTURE.include?(node.first) && node.drop(1).all? { |inner| harmless?(inner) }
            end
          end
          private_class_method :written, :harmless_lambda?, :harmless?
        end
      end
    end
  end
end
