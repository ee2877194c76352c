# frozen_string_literal: true

module Castellan
  module CLI
    # Runs `castellan cache explain PATH`: shows the cache keys of a request, and why they hit or miss.
    #
    #   Castellan::CLI::CacheCommand.new(%w[explain /posts?include=author config.ru]).call # => 0
    #
    # Sends the request twice in this process; the first response shows what other processes have stored in a
    # shared cache.
    class CacheCommand < Command
      USAGE = "castellan cache explain PATH [config.ru | app.rb] [-H 'Name: value'] [--env production]"
      HEADERS = %w[etag cache-control vary content-encoding cache-status age].freeze
      UNSTORED = "not stored: the bytes are too large for the store, or the store failed, or it is a NullStore (so is Rails.cache " \
                 "in development, until you run bin/rails dev:cache)"
      private_constant :HEADERS, :UNSTORED

      # Observes a request: documents, calls of `Castellan.cache`, cache reads, and the number of queries.
      class Seen
        attr_reader :documents, :fetches, :looks, :refusals

        def initialize
          @documents = []
          @fetches = []
          @looks = []
          @refusals = []
          @counter = Instrument::Counter.new
        end

        def query(...) = @counter.query(...)
        def queries = @counter.queries
        def span(*); end

        def cache(layer, outcome, _started_ns, _duration_ns, bytes = nil, age = nil)
          @looks << [layer, outcome, bytes, age]
        end

        def keyed(rendering, key) = @documents << [rendering, key]
        def fetched(*asked) = @fetches << asked
        def unstored(reason) = @refusals << reason

        # @return [Array<String>] the keys of documents and of `Castellan.cache`
        def keys = (@documents + @fetches).filter_map(&:last)

        # @param before [Seen] an equal request
        def other_keys?(before) = before.keys.any? && (keys - before.keys).any?
      end
      private_constant :Seen

      def self.summary = "prints what a request finds in the caches, and why it is not cached"

      private

      def options(parser)
        @environment = "production"
        @headers = {}
        header_option(parser, @headers)
        parser.on("--env NAME", "the environment to boot in (production)") { |name| @environment = name }
      end

      def run(verb = nil, target = nil, file = nil, *others)
        raise WrongArguments, "write castellan cache explain /path, got #{[verb, target].compact.join(" ").inspect}" \
          unless verb == "explain" && target
        raise WrongArguments, "needless argument: #{others.join(" ")}" if others.any?
        raise Castellan::Error, "CASTELLAN=off is set, so nothing is kept; unset it" if Castellan.off?

        load_doctor
        redirected { explain(target, file) }
        0
      end

      def explain(target, file)
        request = arguments { Doctor::RackRequest.new(target, headers: @headers) }
        application = Doctor::Application.boot(file, environment: @environment)
        Instrument.subscribe
        %w[now again].each { |time| show(time, request, *visit(application, request)) }
      end

      def visit(application, request)
        seen = Seen.new
        answer = Recording.open(seen) { Doctor::Answer.to(application, request.env) }
        return [answer, seen] if answer.status

        raise Castellan::Error, "#{request}: the application raised an error: #{Doctor::Refusal.error(answer.error)}"
      end

      def show(time, request, answer, seen)
        fields = HEADERS.filter_map { |name| "#{name}: #{answer.headers[name]}" if answer.headers[name] }
        bytes = Figures.bytes(answer.body.bytesize)
        @out.puts "#{request}, #{time}: #{answer.status}, #{bytes}, #{Figures.counted(seen.queries, "query")}",
                  *fields.map { |field| "  #{field}" }
        return unless time == "now" || seen.looks.any?

        looks = seen.looks.map { |look| look_text(*look) }
        @out.puts "  caches: #{looks.empty? ? "none was read" : looks.join(", then ")}"
        return details(request, answer, seen).each { |line| @out.puts "  #{line}" } if time == "now"

        @out.puts "  the keys have changed: something in them changes with each request, such as the time in a scope" \
          if seen.other_keys?(@before)
      ensure
        @before = seen
      end

      def look_text(layer, outcome, bytes, age)
        further = [(Figures.bytes(bytes) if bytes), ("#{age.round(1)} s old" if age&.positive?)].compact
        "#{layer} #{outcome}#{" (#{further.join(", ")})" if further.any?}"
      end

      def details(request, answer, seen)
        lines = [*http_lines(request, seen), *refusal_lines(request, answer), *unstored_lines(seen)] +
                seen.documents.flat_map { |rendering, key| document_lines(rendering, key) } +
                seen.fetches.flat_map { |key, tables, digest| fetch_lines(key, tables, digest) }
        lines.empty? ? ["no document of Castellan and no Castellan.cache.fetch took part in this response"] : lines
      end

      def http_lines(request, seen)
        return [] unless seen.looks.any? { |layer, *| layer == :http }

        ["Castellan::HTTPCache", "  key: #{HTTPCache::ClientRequest.new(request.env).url}",
         *seen.refusals.compact.map { |reason| "  not stored: #{reason}" }]
      end

      def unstored_lines(seen)
        passed = seen.looks.any? { |layer, outcome, *| outcome == :pass && layer != :http }
        fetched = seen.looks.filter_map { |layer, outcome, *| outcome if layer == :fetch && outcome != :hit }
        nothing = fetched.count(:miss) * 2 > fetched.size # each other miss is followed by another outcome
        [(UNSTORED if passed), ("not stored: the block of Castellan.cache.fetch returned nil, or raised an error" if nothing)].compact
      end

      # The exception of an error page, titles and details of an error document, or what the status means.
      def refusal_lines(request, answer)
        return ["reason: #{answer.error.class}: #{answer.error.message.lines.first&.chomp}"] if answer.error
        return [] if answer.success? || answer.status == 304

        errors = JSON.parse(answer.body)["errors"]
        errors.map { |error| "reason: #{error.values_at("title", "detail").compact.join(": ")}" }
      rescue JSON::ParserError, NoMethodError, TypeError
        ["reason: #{Doctor::Refusal.reason(answer, request)}"]
      end

      def document_lines(rendering, key)
        lines = ["document of #{rendering.definition.name}", "  tables: #{rendering.tables&.sort&.join(", ") || "not known"}"]
        undeclared = "  kept: never, because #{rendering.definition.name} declares no cache: write cache :exact"
        return lines << undeclared unless rendering.definition.caching
        return lines + not_kept(rendering) unless key

        lines + ["  version: #{Castellan.keeper.version(rendering)}", "  key: #{key}",
                 "  codings: #{["identity", *rendering.codings].join(", ")}"]
      end

      def not_kept(rendering)
        never = rendering.unkeepable
        return ["  kept: never, because:", *never.map { |reason| "    #{reason}" }] if never.any?

        ["  kept: not now: #{rendering.not_kept}"]
      end

      def fetch_lines(key, tables, digest)
        lines = ["Castellan.cache.fetch(#{key.inspect})", "  tables: #{tables.empty? ? "none" : tables.join(", ")}"]
        return lines + [*("  version: #{Castellan.cache.version(tables)}" if tables.any?), "  key: #{digest}"] if digest
        return lines << "  kept: not now: #{NOT_KEEPING}" unless Castellan.keeper

        lines << "  kept: not now: #{unversioned(tables)}"
      end

      def unversioned(tables)
        missing = Castellan.cache.missing(tables)
        return Versions.lacking(missing) if missing.any?

        "the version of a table cannot be read (#{Castellan.cache.failure(tables) || "does a transaction write?"})"
      end
    end
  end
end
