# frozen_string_literal: true

module Castellan
  # Describes one performance defect: where it is and what to write instead. Frozen; contains no query
  # literals.
  #
  #   finding.kind            # => :n_plus_one
  #   finding.count           # => 150
  #   finding.location        # => "app/serializers/user_serializer.rb:14"
  #   finding.fix             # => "add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9"
  #
  # - `kind`: :n_plus_one, :duplicate, :write_loop, :cached_repeat, :unused_eager_load, :slow_query or :wide_join
  # - `location`: "path:line" of the code that sends the queries; `source` is that line, `stack` the
  #   application frames of one of the statements, innermost first
  # - `parent_location`: "path:line" of the code that loads the `parent_count` records
  # - `count`: the number of statements sent; `cached_count`: the number answered by the ORM's query cache. Both
  #   are the number of answers for :cached_repeat, whose `total_ns` and `objects` are the most that these cost
  # - `association`: "User#employee"
  # - `fix`: the instruction, or nil with the reason in `fix_refused`
  # - `preload`, `also`, `declaration`: the fix as a trial applies it: the tree to preload at
  #   `parent_location` (`{ employee: {} }`), further places for it, and an association to declare, e.g. `{
  #   in: "User", name: :last_token, association: :tokens, scope: "order(id: :desc)" }`
  Finding = Struct.new(:kind, :count, :cached_count, :fingerprint, :location, :parent_location, :parent_count, :parent_model,
                       :association, :total_ns, :objects, :fix, :fix_refused, :preload, :declaration, :also, :source, :stack,
                       keyword_init: true) do
    def initialize(**)
      super
      freeze
    end

    # @return [Boolean] whether statements were sent repeatedly, as opposed to answered by the query cache, slow
    #   or loaded in vain
    def repeats? = %i[n_plus_one duplicate write_loop].include?(kind)

    # @return [Boolean] whether it combines many requests; {#count} is then a number of requests
    def of_many_requests? = kind == :unused_eager_load

    # @return [String] one line for a log
    def to_s
      text = "#{kind}: #{count} #{counted} at #{location || "an unknown place"}"
      text << " through #{association}" if association
      text << " for #{parent_count || "the"} records loaded at #{parent_location}" if parent_location
      text << cost if total_ns
      text << "; #{fix || "no fix: #{fix_refused}"}" if fix || fix_refused
      text
    end

    private

    def cost
      return format(", %.1f ms", total_ns / 1e6) unless kind == :cached_repeat

      format(", answered by the query cache for at most %.1f ms and %d objects", total_ns / 1e6, objects)
    end

    def counted
      return count == 1 ? "request" : "requests" if of_many_requests?

      count == 1 ? "query" : "queries"
    end
  end
end
