# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Writes the fix for a partial read of an association per record: the last token, a count, an existence
      # check.
      #
      #   Part.new(one, {}).fix.text
      #   # => "declare in User: has_one :last_token, -> { where(on_behalf: false).order(id: :desc) }, …; add .preload(:last_token) where …"
      #
      # Copies the code from the source line, and only if it selects what the statement selected.
      class Part
        CONDITIONS = %i[where not exclude filter rewhere].freeze
        ORDERS = %i[order reorder reverse_order reverse].freeze
        READ_FROM_LOADED = %i[size length empty? any? none? many? include? pluck ids pick take blank? present? first last cache_key
                              cache_version cache_key_with_version].freeze
        ONE = %i[first first! last last! take take! find_by find_by! get].freeze
        BATCHES = %i[find_each find_in_batches in_batches paged_each].freeze
        KEYED = %i[find with_pk with_pk!].freeze
        # Methods that turn the association's query into another one.
        OTHERWISE = %i[joins left_joins left_outer_joins select reselect group distinct having unscope includes preload eager_load
                       references from lock merge or and extending readonly eager eager_graph join left_join inner_join
                       association_join union select_append select_group group_and_count select_hash select_hash_groups as_hash
                       to_hash to_hash_groups].freeze
        # With a block, these are Ruby's own methods.
        RUBY = %i[select group].freeze
        private_constant :CONDITIONS, :ORDERS, :READ_FROM_LOADED, :ONE, :BATCHES, :KEYED, :OTHERWISE, :RUBY

        # @param one [Verdict::Case] with a link and a parent
        # @param names [Hash] declarations of other fixes, `[class, name] => code`; this fix adds its own
        def initialize(one, names)
          @one = one
          @names = names
          @link = one.link
          @shape = one.group.shape
          @models = one.models
          @source = Source.at(one.site)
          @asked = Selection.new(@shape, @link)
          @association = Selection.declared(@link)
          @steps = steps
        end

        # @return [Fix]
        def fix
          return loading.fix if answered?

          reason = refusal
          return Fix.none(reason) if reason
          return calculated if @shape.calculation?
          return existing if @shape.existence?
          return loading.fix(after: read) if whole?

          constant? ? declared : at_once(bulk.records(@link.target, @link.key, [filters, order].reject(&:empty?).join(".")))
        end

        private

        def at = CallSite.location(@one.site)
        def loading = Loading.new(@one)
        def bulk = Bulk.of(@models)
        def active_record? = @models == ActiveRecordModels

        # Of several chains at the line, the one with the statement's conditions.
        def steps
          chains = @source.steps(@link.name, :"#{@link.name}_dataset")
          chains.find { |chain| chosen?(filters(chain)) } || chains.first
        end

        def chosen?(code) = Selection.scoped(@link, code)&.same?(@asked, ordered: false)

        # Whether the call sends no query once the association is loaded, or the method checks `loaded?`
        # first.
        def answered?
          return false unless active_record?
          return true if @source.asks_loaded?(@link.name)

          loaded = @steps.nil? ? @source.calls.any? { |call| call.name.end_with?("_ids") } : READ_FROM_LOADED.include?(@steps.first&.name)
          loaded && whole?(ordered: !limited_by_one?) && (@steps.nil? || @steps.first.arguments.empty? || reads_columns?)
        end

        def limited_by_one? = %i[take pick].include?(@steps&.first&.name)

        def reads_columns? = %i[pluck pick include?].include?(@steps.first.name) || @steps.first.name == :any?

        # Whether the statement reads the association as declared.
        def whole?(ordered: !@shape.calculation? && !@shape.existence?)
          @asked.same?(@association, ordered: ordered)
        end

        def refusal
          if limited? then "a limit for each record of #{@link} is one for all of them when it is preloaded: rank the rows in the database"
          elsif used?(BATCHES) then "#{@link} is read in batches at #{at}; read .#{@link.name}.each of what is preloaded"
          elsif used?(KEYED) then "another record of #{@link} is asked for by its key at #{at}"
          elsif otherwise? then "#{@link} is asked for with .#{finder&.name} at #{at}, which a preload of it does not answer"
          elsif !whole? then condition_refusal
          end
        end

        def condition_refusal
          return "the conditions on #{@link} at #{at} differ from record to record" unless constant? || (groupable? && steady?)

          "#{at} does not show all conditions on #{@link}" unless shown?
        end

        # Whether the line's code has the statement's conditions.
        def shown? = !filters.nil? && Selection.scoped(@link, evaluable)&.same?(@asked, ordered: false)

        def used?(names) = (@steps || @source.calls).any? { |step| names.include?(step.name) }

        def limited?
          return true if @shape.fingerprint.include?(" offset ?")

          @shape.single? && !@shape.existence? && (@steps ? @steps.any? { |step| limits?(step) } : @source.limits? || !used?(ONE))
        end

        def limits?(step) = Source.limit?(step)

        def otherwise?
          step = finder
          step && OTHERWISE.include?(step.name) && (step.arguments.any? || !RUBY.include?(step.name))
        end

        # The leading calls that filter and sort.
        def choosing(chain = @steps) = chain.to_a.take_while { |step| condition?(step) || ORDERS.include?(step.name) || limit_one?(step) }

        def condition?(step) = CONDITIONS.include?(step.name) || @models.scope?(@link.target, step.name)

        def limit_one?(step) = step.name == :limit && step.arguments.map(&:text) == ["1"]

        # The first call after those: `last`, `pluck(:id)`.
        def finder = @steps.to_a[choosing.size]

        # The calls that filter, including a finder's conditions.
        def conditions(chain = @steps)
          choosing = choosing(chain)
          finder = chain.to_a[choosing.size]
          [*choosing.select { |step| condition?(step) }, *(finder if finder && chooses?(finder))]
        end

        # A key or a number of records is not a condition.
        def chooses?(step)
          return step.arguments.any? if step.name == :exists?

          step.arguments.any? { |one| %i[pair hash].include?(one.kind) } &&
            step.name.match?(/\A(?:find_by|first|last|take|get|any\?|empty\?|count)/)
        end

        # @return [String, nil] the conditions as code; nil if the line lacks conditions of the statement
        def filters(chain = @steps) = chain ? conditions(chain).map { |step| where(step, :written, :text) }.join(".") : columns

        # The conditions with 0 in place of computed values.
        def evaluable = @steps ? conditions.map { |step| where(step, :evaluable, :evaluable_text) }.join(".") : columns(&:evaluable_text)

        def where(step, call, text)
          return step.public_send(call) if condition?(step)

          arguments = step.arguments.map(&text)
          key = step.name == :exists? && step.arguments.none? { |one| %i[pair hash list].include?(one.kind) }
          "where(#{"#{@models.primary_key(@link.target)}: " if key}#{arguments.join(", ")})"
        end

        # If the line names the model instead of the association: the values that the line gives for the
        # compared columns.
        def columns
          further = @asked.conditions - @association&.conditions.to_a
          values = further.map { |condition| [name = condition[/\A(\w+) = \?\z/, 1], name && @source.value(name)] }
          return if values.any? { |_name, value| value.nil? }

          pairs = values.map { |name, value| "#{name}: #{block_given? ? yield(value) : value.text}" }
          pairs.empty? ? "" : "where(#{pairs.join(", ")})"
        end

        # Whether the line's conditions are the same for each record.
        def constant?
          return conditions.all? { |step| step.arguments.all?(&:constant?) && (step.block.nil? || columns_only?(step.block)) } if @steps

          @asked.columns.all? { |name| @source.value(name).nil? || @source.value(name).constant? }
        end

        # Sequel takes conditions as a block in which columns are method calls.
        def columns_only?(block)
          block.each.none? do |node|
            node.kind == :local || (node.call? && node.receiver.nil? && !@models.column?(@link.target, node.name.to_s))
          end
        end

        # Whether the conditions are not literals but were the same for each record.
        def steady?
          varying = @one.group.pieces&.varying.to_a
          varying.any? && !@asked.columns.intersect?(varying)
        end

        def groupable? = !@link.through && !@link.type && !@link.composite?

        def order = @shape.order ? @models.order(@shape.order) : ""

        def at_once(code)
          return Fix.none("no query for all records answers this for each of #{@link}") unless code && groupable? && !code.include?("…")

          Fix.new("ask for all at once, before the loop at #{at}: #{code} (what is missing there has none)")
        end

        # The association's own conditions are missing from the line, so they cannot be copied.
        def all_filters
          return filters if !whole? || @association.conditions.empty?

          nil
        end

        def calculated
          return already("size", "count") if @one.there && whole? && @shape.fingerprint.start_with?("select count(")

          at_once(all_filters && bulk.calculation(@link.target, @link.key, @shape.fingerprint, all_filters))
        end

        def existing
          return already("any?", "exists?") if @one.there && whole?

          at_once(all_filters && bulk.existing(@link.target, @link.key, all_filters))
        end

        def already(good, bad)
          bad = finder&.name || bad
          owner = ".#{@link.name}" unless active_record?
          Fix.new("#{@link.name} is loaded with the #{loading.parents} already, at #{loading.places}; " \
                  "write #{owner}.#{active_record? || bad == :count ? good : bad} instead of " \
                  "#{".#{@link.name}_dataset" unless active_record?}.#{bad} at #{at}")
        end

        # Adds how to read the preloaded association at a line that queries it again.
        def read
          first = ".first" if @shape.single? && @link.to == :many
          "; and read .#{@link.name}#{first}#{column}#{mapped} at #{at}"
        end

        def declared
          single = @shape.single? && finder_call.nil?
          scope = [filters, order].reject(&:empty?).join(".")
          unless Selection.scoped(@link, scope)&.same?(@asked, ordered: true)
            return Fix.none("no association can be declared with the order of #{@link} at #{at}")
          end

          name, code = free(single ? single_name : "chosen_#{@link.name}", @models.macro(single ? :one : :many), scope)
          read = "; and read .#{[name, finder_call].compact.join(".")}#{column unless finder_call} at #{at}"
          Loading.new(@one, Preload.path([*@one.parent.path, name]))
                 .fix(before: "declare in #{declaring.name}: #{code}; ", after: read, declaration: declaration(name, scope, single))
        end

        # A trial cannot declare associations through a join, or rewrite a line that does not read the
        # association.
        def declaration(name, scope, single)
          return if @link.through || @link.composite? || @steps.nil?

          { in: declaring.name, name: name, association: @link.name, scope: scope, single: single }
        end

        # The call that remains to be made on the new association, because it loads more than the line reads.
        def finder_call
          return finder.written if finder && %i[pluck pick ids].include?(finder.name)
          return mapped.delete_prefix(".") if mapped

          "first" if @shape.single? && @link.through
        end

        # Sequel's `get` returns one column of the first record.
        def column = (finder.arguments.first&.text.to_s.sub(/\A:(\w+)\z/, '&.\1') if finder&.name == :get)

        # Sequel's `select_map` returns one column of each record.
        def mapped
          return unless finder && %i[select_map select_order_map].include?(finder.name)

          column = finder.arguments.first
          column&.kind == :literal ? ".map(#{column.text.sub(":", "&:")})" : ".map { … }"
        end

        # The class that declares the association; the foreign key is named after it.
        def declaring = @link.declared || @link.model

        def single_name
          prefix = @shape.last? ? "last" : "first"
          prefix = "chosen" if finder&.name.to_s.match?(/take|find_by/)
          "#{prefix}_#{Words.singular(@link.target)}"
        end

        # Chooses a name that is neither a method of the class nor declared by another fix.
        # @return [Array(Symbol, String)] the name and its declaration
        def free(name, macro, scope)
          names = ["", "preloaded_"].map { |prefix| :"#{prefix}#{name}" } + (2..).lazy.map { |number| :"#{name}_#{number}" }.first(20)
          names.each do |one|
            code = @models.scoped(macro, one, @link, scope)
            next if declaring.method_defined?(one) || declaring.private_method_defined?(one)
            return [one, code] if (@names[[declaring, one]] ||= code) == code
          end
        end
      end
    end
  end
end
