# frozen_string_literal: true

module Castellan
  module Detect
    # Chooses the {Fix} of each case of a {Verdict}.
    # Merges associations that are missing at the same load into one call, and declares no name twice.
    #
    #   Fixes.new(cases).of(one).text
    #   # => "add .preload(:employee, :groups) where the users are loaded: app/controllers/users_controller.rb:9"
    class Fixes
      def initialize(cases)
        @cases = cases
        @names = {}
        @alone = {}.compare_by_identity
      end

      def of(one)
        fix = mergeable?(one) ? Fix::Loading.new(one, merged(one)).fix : alone(one)
        fix.ambiguous(one.rivals)
      end

      private

      def alone(one) = @alone[one] ||= write(one)

      def write(one)
        case one.kind
        when :write_loop then insert(one)
        when :cached_repeat then Fix.none(advice(one))
        when :duplicate then Fix.none("query once and keep the result: these #{one.group.count} statements are the same, values included")
        else one.link ? association(one) : Fix::LookUp.new(one).fix
        end
      end

      # The query cache saves the query, but not the work of building it and its records.
      def advice(one)
        preload = ", or preload #{one.link.name} where the #{Words.plural(one.parent.model)} are loaded" if one.link && one.parent
        "the result is built again each time: keep it in a local variable or memoize it#{preload}"
      end

      def association(one)
        reason = refusal(one)
        return Fix.none(reason) if reason

        one.group.association ? Fix::Loading.new(one).fix : Fix::ScopedOne.new(one, @names).fix
      end

      def refusal(one)
        link = one.link
        at = CallSite.location(one.site)
        if one.parent.nil? then "no load of several #{Words.plural(link.model)} was seen, to which #{link.name} could be added"
        elsif recursive?(one)
          "#{link} is read at #{at} by a method that calls itself: preload it as deep as the tree goes where its first record is " \
            "loaded, or read the tree at once, by WITH RECURSIVE"
        elsif one.group.association && anew?(one, Source.at(one.site))
          "#{link} is loaded again at #{at}, by a reload or with a block, whatever is loaded"
        elsif one.models.limited?(link) then Fix.limit(link)
        end
      end

      # Whether a recursive method reads a tree: the association at the line loads its own owners, or the line
      # reads the association of more records than were loaded elsewhere.
      def recursive?(one)
        link = one.link
        parent = one.parent
        return true if parent.site == one.site && parent.walk == link.name &&
                       Source.at(one.site).calls.count { |call| call.name == link.name } < 2

        one.group.association && link.target && parent.path.empty? && parent.also.to_a.include?(one.site) &&
          one.count > parent.count.to_i && (link.target <= link.model || link.model <= link.target)
      end

      # Whether the code queries again although the association is loaded: `user.posts.reload`, or in Sequel
      # `user.posts { |dataset| … }`.
      # A plain read beside a call with arguments is that of a builder: `json.author post.author.name`.
      def anew?(one, source)
        name = one.link.name
        calls = source.calls.select { |call| call.name == name }
        source.calls?(:"reload_#{name}") || source.steps(name).any? { |steps| steps.first&.name == :reload } ||
          (calls.any? && calls.all? { |call| call.arguments.any? || (call.block && one.models == SequelModels) })
      end

      def mergeable?(one)
        one.kind == :n_plus_one && one.link && one.parent && alone(one).preload && alone(one).declaration.nil? &&
          Fix::Loading.new(one).plain?
      end

      def merged(one)
        together = @cases.select do |other|
          mergeable?(other) && other.parent.site == one.parent.site && other.parent.model == one.parent.model
        end
        first, others = together.partition { |other| Fix::Loading.new(other).first? }
        Preload.merge(*(first + others).map { |other| alone(other).preload })
      end

      # `insert_all!` raises on duplicates, like INSERT; there is no general counterpart of a conflict clause or a rescue.
      def insert(one)
        shape = one.group.shape
        return Fix.none("a SELECT gives the rows: let one SELECT choose them all") if shape.copies?

        model = shape.model_at(one.site)
        plain = shape.verb == "insert" && !shape.conflict? && !one.group.rejected?
        return Fix.none("write several rows in one statement") unless model && plain

        Fix.new(text: "write once, after the loop at #{CallSite.location(one.site)}: #{shape.library.insert_many(model)} " \
                      "(callbacks and validations do not run)")
      end
    end
  end
end
