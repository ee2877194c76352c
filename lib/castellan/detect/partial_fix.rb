# frozen_string_literal: true

module Castellan
  module Detect
    # The fix for a part of an association that is asked of the database for each record: the last token, a count, whether there
    # are any.
    #
    #   PartialFix.new(one, { tokens: {} }).cure.text
    #   # => "declare in User: has_one :last_token, -> { where(on_behalf: false).order(id: :desc) }, …; add .preload(:last_token) where …"
    #
    # Reads the line of source for what the statement does not tell: the values of its conditions, and which call is written.
    class PartialFix
      READ_FROM_LOADED = %w[size length empty? any? none? many? include? pluck ids pick take blank? present? cache_key cache_version
                            cache_key_with_version].freeze
      BATCHED = /\.(find_each|find_in_batches|in_batches|paged_each)\b/
      # A limit that is not 1: of a number, a constant, or a method.
      LIMITED = /\.(?:limit|(?:first|last|take)(?=\((?!1\))[\w.:@]+\)))\((?!1\))/
      # They make another query of it than the association's.
      OTHERWISE = %w[joins left_joins left_outer_joins select reselect group distinct having unscope includes preload eager_load references
                     from lock merge or and extending readonly eager eager_graph join left_join inner_join association_join union
                     select_append select_group group_and_count select_hash select_hash_groups as_hash to_hash to_hash_groups].freeze
      private_constant :READ_FROM_LOADED, :BATCHED, :LIMITED, :OTHERWISE

      # @param one [Verdict::Case] with a link and a parent
      # @param tree [Hash] what to preload where the whole association is; other associations may be in it
      def initialize(one, tree)
        @one = one
        @tree = tree
        @link = one.link
        @shape = one.group.shape
        @source = WrittenCall.at(one.site)
        @chain = written
        @elsewhere = @chain&.filters.to_s.match?(/\b#{@link.key}: /) # what is on the line is another's, who is the same each time
        @chain = nil if @elsewhere
        @bulk = Bulk.of(one.models)
      end

      # @return [Cure]
      def cure
        if @elsewhere && groupable? then of_all
        elsif batched then whole
        elsif limited? then limited
        elsif otherwise? then otherwise
        elsif @chain&.keyed? then keyed
        elsif varying? then varying
        elsif versioned? then loading.cure
        elsif @shape.calculation? then calculated
        elsif @shape.existence? then existence
        else declared
        end
      end

      private

      def at = CallSite.location(@one.site)

      # The whole association.
      def loading = Loading.new(@one, @tree)

      # What the line does with the association. Where it names it several times, that which asks what was asked.
      def written
        places = @source.to_enum(:scan, /\b#{Regexp.escape(@link.name.to_s)}(?:_dataset)?\b/).map { Regexp.last_match.begin(0) }
        chains = places.filter_map { |place| Chain.read(@source[place..], @link.name, @link.target) }
        chains.find { |chain| chain.filters.empty? != conditional? } || chains.first
      end

      # Whether the statement chooses among the records of the association.
      def conditional? = further.any? || @shape.compares?

      # @return [String, nil] how records are read a batch at a time
      def batched = @chain ? (@chain.finder if @chain.batched?) : @source[BATCHED, 1]

      # One who reads in batches wants all.
      def whole
        return chosen("each") if @chain && @chain.filters != ""
        return varying if varying? || (@chain.nil? && further.any?)
        return loading.cure(after: instead("each", batched), read: :each) if @chain

        loading.cure(after: " and write .#{@link.name}.each instead of .#{batched} on the model at #{at}", read: :each)
      end

      # A limit on the line may be the parents' where the statement has none.
      def limited?
        return true if @shape.fingerprint.include?(" offset ?")

        @chain ? @chain.limited? || (@shape.single? && several?) : @shape.single? && @source.match?(LIMITED)
      end

      def several? = ".#{@chain.finder}#{@chain.arguments}".match?(LIMITED)

      # The number of records and the newest change, which Rails also reads from what is loaded.
      def versioned? = @chain && @chain.finder.to_s.start_with?("cache_") && reads_loaded? && !conditions?

      # With a block `select` and `group` are Ruby's.
      def otherwise?
        OTHERWISE.include?(@chain&.finder) && (@chain.arguments || !%w[select group].include?(@chain.finder))
      end

      def otherwise
        code = grouped_further
        return Cure.new(text: "calculate for all at once, before the loop at #{at}: #{code} (what is missing there has none)") if code

        advice = if @shape.calculation? then "calculate for all in one query, grouped by #{@link.key}"
                 else "declare an association that has it in its scope, and preload that"
                 end
        Cure.refused("#{@link} is asked for with .#{@chain.finder} at #{at}, which a preload of it does not answer: #{advice}")
      end

      # What is counted by a column of each record's can be counted by two of all records'.
      def grouped_further
        columns = @chain.arguments.to_s[/\A\((:\w+(?:, :\w+)*)\)\z/, 1] if @chain.finder == "group"
        return unless columns && @shape.calculation? && groupable? && @chain.constant?

        group&.sub(/\.group\(:\w+/) { |key| "#{key}, #{columns}" }
      end

      # Without the association on the line its conditions are looked for one by one.
      def varying?
        @chain ? !@chain.constant? : further.any? { |column| WrittenCall.varies?(@source, column) }
      end

      # Sequel takes as many of each as the association says.
      def limited
        number = @shape.sequel? && @chain&.limit
        return declaration(free(:"first_#{@link.name}"), :many, limit: number) if number

        Cure.refused("a limit for each record of #{@link} becomes a limit for all of them when it is preloaded, and without it all are " \
                     "read; rank the rows in the database, by ROW_NUMBER() or LATERAL")
      end

      def keyed
        Cure.refused("another record of #{@link} is asked for by its key each time: " \
                     "ask for all at once: #{@bulk.records(@link.target, @one.models.primary_key(@link.target))}")
      end

      def varying
        return of_all if groupable? && steady?

        all = groupable? ? ": #{@bulk.records(@link.target, @link.key)}" : ", by a join"
        Cure.refused("the conditions on #{@link} at #{at} differ from record to record: no preload can answer them; " \
                     "ask for all at once#{all}")
      end

      # Whether the conditions, though no literals, were the same for each record.
      def steady?
        varying = @one.group.pieces&.varying.to_a
        @chain && further.any? && varying.any? && !further.intersect?(varying) && !@shape.compares?
      end

      def of_all
        code = if @shape.calculation? then group
               elsif @shape.existence? then @bulk.existing(@link.target, @link.key, filters)
               else @bulk.records(@link.target, @link.key, filters)
               end
        return Cure.refused("no preload answers this calculation; ask for all at once, grouped by #{@link.key}") unless code

        Cure.new(text: "ask for all at once, before the loop at #{at}: #{code}; no association can be declared with conditions that are " \
                       "no literals#{otherwise_a_hash}", **together(code))
      end

      def otherwise_a_hash
        key = @chain&.doubtful_key
        "; where #{key} is a Hash, write where(#{key}) for it" if key
      end

      def together(code) = code.include?("…") ? {} : { remedy: { together: @link.key, of: @link.target.name } }

      # Whether the call at the line asks no more once the association is loaded. A dataset of Sequel always does.
      def reads_loaded? = !@shape.sequel? && READ_FROM_LOADED.include?(@chain&.finder)

      def instead(good, bad)
        return " and read .#{@link.name}.#{good} at #{at}" unless @chain
        return " and write .#{good} instead of .#{bad} at #{at}" unless @shape.sequel?

        " and write .#{@link.name}.#{good} instead of .#{@link.name}_dataset.#{bad} at #{at}"
      end

      # The columns that must equal something besides the association's own.
      def further = @shape.equal - [*@link.keys, @link.type]

      def conditions? = @chain ? @chain.conditions != "" : further.any?

      def existence
        return chosen(@chain ? @chain.finder.sub("exists?", "any?") : "any?") if conditions?
        return loading.cure if reads_loaded?

        loading.cure(after: @shape.sequel? ? instead(*[@chain&.finder || "empty?"] * 2) : instead("any?", "exists?"), read: :any?)
      end

      def calculated
        return grouped if conditions?
        return counted if @shape.fingerprint.start_with?("select count(")

        in_ruby || grouped
      end

      def counted
        written = instead("size", "count") unless reads_loaded?
        grouped = "; or count them in one query: #{group}" if groupable? && group
        loading.cure(after: "#{written}#{grouped}", **(written ? { read: :calculate } : {}))
      end

      def groupable? = !@link.through && !@link.type && !@link.composite?

      def group
        @bulk.calculation(@link.target, @link.key, @shape.fingerprint, filters)
      end

      def filters = @chain ? [declared_with, @chain.filters].reject(&:empty?).join(".") : columns

      # The association's own conditions, which are not on the line.
      def declared_with
        return "" unless ScopeColumns.any?(@link)

        names = ScopeColumns.of(@link)
        "where(#{names.any? ? names.map { |name| "#{name}: …" }.join(", ") : "…"})"
      end

      def grouped
        return Cure.refused("no preload answers a calculation on #{@link} with conditions; join and group in one query") unless groupable?
        return Cure.refused("no preload answers this calculation; ask for all at once, grouped by #{@link.key}") unless group

        Cure.new(text: "calculate for all at once, before the loop at #{at}: #{group} (what is missing there has none)", **together(group))
      end

      # @return [Cure, nil] nil where Ruby has no method for it, or the line does not show what is calculated
      def in_ruby
        column = @chain&.arguments.to_s[/\A\(:(\w+)\)\z/, 1]
        method = { "sum" => "sum", "minimum" => "min", "min" => "min", "maximum" => "max", "max" => "max" }[@chain&.finder]
        return unless column && method

        loading.cure(after: "#{instead("filter_map(&:#{column}).#{method}", "#{@chain.finder}(:#{column})")}" \
                            "#{"; or ask for all at once: #{group}" if groupable? && group}", read: :calculate)
      end

      def declared
        return chosen unless scope.empty?
        return loading.cure if reads_loaded? || (@chain.nil? && @source.include?("_ids"))

        first = ".first" if @shape.single? && @link.to == :many
        loading.cure(after: " and read .#{@link.name}#{first}#{column}#{mapped} at #{at}", read: @link.name)
      end

      # An association of its own, which holds what was asked for. One through a collection must be a collection, too.
      def chosen(call = self.call)
        one?(call) ? declaration(single_name, :one) : declaration(free(:"chosen_#{@link.name}"), :many, call: call)
      end

      def declaration(name, to, call: nil, **limit)
        code = @one.models.scoped(@one.models.macro(to), name, @link, scope, *limit.values)
        read = "; and read .#{[name, call].compact.join(".")}#{column unless call} at #{at}"
        complete(code, Loading.new(@one, Preload.path([*@one.parent.path, name]))
                              .cure(before: "declare in #{declaring.name}: #{code}; ", after: read,
                                    declare: code, in: declaring.name, read: name))
      end

      # What is still to be called on the association, because it holds more or other things than the line asks for.
      def call
        return "#{@chain.finder}#{@chain.arguments}" if %w[pluck pick ids].include?(@chain&.finder)
        return mapped.delete_prefix(".") if mapped

        "first" if @shape.single? && @link.through
      end

      # Sequel's `get` wants one column of the first.
      def column = (@chain.arguments.to_s.sub(/\A\(:(\w+)\)\z/, '&.\1') if @chain&.finder == "get")

      # Its `select_map` wants one of each.
      def mapped
        return unless %w[select_map select_order_map].include?(@chain&.finder)

        @chain.arguments.to_s[/\A\(:\w+\)\z/] ? ".map(#{@chain.arguments[1..-2].sub(":", "&:")})" : ".map { … }"
      end

      def one?(call) = @shape.single? && call.nil?

      # Where something is left to the reader, or a join would be made a model of, there is nothing to try.
      def complete(code, cure)
        return cure unless code.include?("…") || @link.makes

        Cure.new(text: cure.text, refused: cure.refused, remedy: ({ makes: @link.makes } if @link.makes))
      end

      # The class whose source has the association; the key is named after it.
      def declaring
        @link.declared || @link.model
      end

      # The order is the statement's own, because `last` turns round the one that is written.
      def scope
        order = @shape.order
        written = (order ? @chain&.filters : @chain&.unlimited&.join(".")).to_s
        written = columns if written.empty?
        [written, order ? @one.models.order(order) : ""].reject(&:empty?).join(".")
      end

      # Where the source does not show the condition, its columns are named and the values left to the reader.
      def columns
        values = further.map { |column| "#{column}: #{WrittenCall.literal(@source, column) || "…"}" }
        values.empty? ? "" : "where(#{values.join(", ")})"
      end

      def single_name
        prefix = @shape.last? ? "last" : "first"
        prefix = "chosen" if @chain&.finder.to_s.match?(/take|find_by/)
        free(:"#{prefix}_#{Words.singular(@link.target)}")
      end

      # A name that the class has no method of: one of its own may be the one that asks.
      def free(name)
        ["", "preloaded_", "separately_preloaded_"].map { |prefix| :"#{prefix}#{name}" }.find do |free|
          !declaring.method_defined?(free) && !declaring.private_method_defined?(free)
        end || name
      end
    end
  end
end
