# frozen_string_literal: true

module Castellan
  # Describes one performance problem: where it is, and the code to write instead.
  #
  #   finding.kind            # => :n_plus_one
  #   finding.count           # => 150
  #   finding.location        # => "app/serializers/user_serializer.rb:14"
  #   finding.fix             # => "add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9"
  #
  # Frozen. Contains no literal values of queries.
  #
  # - `kind`: :n_plus_one, :duplicate, :write_loop, :cached_repeat, :unused_eager_load, :slow_query or
  #   :wide_join
  # - `location`: "path:line" of the code that sends the queries; `source` is this line, `stack` the
  #   application frames of one of the statements, innermost first
  # - `parent_location`: "path:line" of the code that loads the `parent_count` records
  # - `count`: the number of statements sent; `cached_count`: how many the ORM's query cache answered. For
  #   :cached_repeat both are the number of answers, and `total_ns` and `objects` are upper limits of their
  #   cost
  # - `association`: "User#employee"
  # - `fix`: the instruction, or nil; then `fix_refused` has the reason
  # - `preload`, `also`, `declaration`: the fix as the doctor tries it: the associations to preload at
  #   `parent_location` (`{ employee: {} }`), more places that need it, and an association to declare, e.g.
  #   `{ in: "User", name: :last_token, association: :tokens, scope: "order(id: :desc)" }`
  Finding = Struct.new(:kind, :count, :cached_count, :fingerprint, :location, :parent_location, :parent_count, :parent_model,
                       :association, :total_ns, :objects, :fix, :fix_refused, :preload, :declaration, :also, :source, :stack,
                       keyword_init: true) do
    def initialize(**)
      super
      freeze
    end

    # @return [Boolean] whether statements repeat; false for answers of the query cache, slow queries and
    #   unused loads
    def repeats? = %i[n_plus_one duplicate write_loop].include?(kind)

    # @return [Boolean] whether it combines many requests; {#count} is then the number of requests
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
