# frozen_string_literal: true

module Castellan
  # One thing that is slow, where it is, and what to write instead. Frozen; holds no literal of a query.
  #
  #   finding.kind            # => :n_plus_one
  #   finding.count           # => 150
  #   finding.location        # => "app/serializers/user_serializer.rb:14"
  #   finding.fix             # => "add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9"
  #
  # `kind` is one of :n_plus_one, :duplicate, :write_loop, :unused_eager_load, :counter_cache, :slow_query, :wide_join.
  # `location` is where the queries were caused, `parent_location` where the `parent_count` records were loaded, both
  # "path:line". `count` is the number of statements sent, `cached_count` of those that the ORM's query cache answered.
  # `association` is "User#employee". `fix` is text, or nil with `fix_refused` saying why; the rest is the fix as a trial applies it:
  # `preload` what to preload where the parents are loaded, e.g. `{ employee: {} }`, `also` further places to do so, and `declaration` an
  # association to declare, e.g. `{ in: "User", name: :last_token, association: :tokens, scope: "order(id: :desc)", single: true }`.
  # `source` is the line of source at `location`, `stack` the application's frames at one of the statements, the innermost first.
  Finding = Struct.new(:kind, :count, :cached_count, :fingerprint, :location, :parent_location, :parent_count, :parent_model,
                       :association, :total_ns, :fix, :fix_refused, :preload, :declaration, :also, :source, :stack, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end

    # @return [Boolean] whether statements repeat, and not one is slow or something is loaded in vain
    def repeats? = %i[n_plus_one duplicate write_loop].include?(kind)

    # @return [Boolean] whether it adds up many requests, so that {#count} is of requests
    def of_many_requests? = %i[unused_eager_load counter_cache].include?(kind)

    # @return [String] one line for a log
    def to_s
      text = "#{kind}: #{count} #{counted} at #{location || "an unknown place"}"
      text << " through #{association}" if association
      text << " for #{parent_count || "the"} records loaded at #{parent_location}" if parent_location
      text << format(", %.1f ms", total_ns / 1e6) if total_ns
      text << "; #{fix || "no fix: #{fix_refused}"}" if fix || fix_refused
      text
    end

    private

    def counted
      return count == 1 ? "request" : "requests" if of_many_requests?

      count == 1 ? "query" : "queries"
    end
  end
end
