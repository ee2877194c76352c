# frozen_string_literal: true

require "castellan/load_test"
require "rack/mock_request"
require "stringio"
require_relative "../../test/support/servers"
require_relative "../support/apart"
require_relative "../support/paired"
require_relative "../support/same_documents"
require_relative "../support/way"

module Benchmarks
  # Compares Rack applications that serve the same request: in this process, then behind one Puma.
  #
  #   contest = Contest.new("a page", [Contest::Entry.new("Castellan", app, "/letters", {})], status: 200)
  #   contest.measure(rounds: 9, seconds: 1)   # => a Result; exits if the responses differ
  #
  # Puma runs in this process, and the clients run in a fork, which requests all entries in turns. The CPU
  # time of a request is that of Puma's process.
  class Contest
    # A request to an application. The `links` of a document contain the host, so they are not compared.
    Entry = Struct.new(:name, :app, :path, :headers) do
      def env
        @env ||= Rack::MockRequest.env_for(path, headers.to_h { |name, value| ["HTTP_#{name.upcase.tr("-", "_")}", value] })
      end

      # @return [Array(Integer, String)] status and body
      def answer
        status, _, body = app.call(env.dup)
        text = +""
        body.each { |bytes| text << bytes }
        body.close if body.respond_to?(:close)
        [status, text]
      end
    end

    Row = Struct.new(:name, :us, :objects, :rate, :cpu_us)
    # @return [String]
    # @return [Array<Row>]
    # @return [Integer] the bytes of the body
    # @return [Array(Float, Float, Float), nil] see {OwnPart#us}
    Result = Struct.new(:title, :rows, :bytes, :own) do
      def row(name) = rows.find { |row| row.name == name } || raise("#{title} has no way #{name.inspect}")
    end

    CLIENTS = 4
    CPU = "/processor-time"
    # The number of lost responses to tolerate in a load. After Puma 7.2 and 8.0 have passed a connection to
    # another thread, they empty its buffer (`Puma::Server#process_client`), so some responses, even of a
    # lambda, are late or lack their first lines.
    LOST = 20
    private_constant :CLIENTS, :CPU, :LOST

    # @param status [Integer] the status of all responses
    # @param own [OwnPart, nil] measured as well
    # @param same [Boolean] whether the documents must be equal; a 304 has none
    def initialize(title, entries, status: 200, own: nil)
      @title = title
      @entries = entries
      @status = status
      @own = own
    end

    # @return [Result]
    def measure(rounds:, seconds:, enough: 0.03)
      bytes = check
      ways = @entries.map { |entry| Way.new(entry.name, nil) { entry.answer } }
      paired = Paired.new(ways, rounds: rounds, enough: enough)
      own = @own&.us(rounds)
      loads = serve(rounds, seconds)
      check
      Result.new(@title, ways.map { |way| row(way.name, paired, loads.fetch(way.name)) }, bytes, own)
    end

    private

    def row(name, paired, load)
      Row.new(name, (paired.ms(name) * 1000).round(1), paired.objects(name), load.first.round, load.last.round(1))
    end

    def check
      bodies = @entries.map do |entry|
        status, body = entry.answer
        abort "#{@title}: #{entry.name} answers #{status}, not #{@status}: #{body[0, 300]}" unless status == @status
        body
      end
      return 0 if @status == 304

      documents = bodies.map { |body| JSON.generate(JSON.parse(body).then { |json| json.is_a?(Hash) ? json.except("links") : json }) }
      documents.each_with_index do |document, index|
        found = SameDocuments.difference(documents.first, document) or next
        abort "#{@title}: #{@entries.first.name} and #{@entries[index].name} do not answer the same document. #{found}"
      end
      bodies.first.bytesize
    end

    # @return [Hash{String => Array(Float, Float)}] requests per second, and µs of CPU time per request
    def serve(rounds, seconds)
      apps = @entries.each_with_index.to_h { |entry, index| ["/#{index}", entry] }
      app = lambda do |env|
        path = env["PATH_INFO"]
        next [200, {}, [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID).to_s]] if path == CPU

        entry = apps.fetch(path[0, 2])
        env["PATH_INFO"] = path[2..]
        entry.app.call(env)
      end
      Castellan::TestServers.puma(app, threads: CLIENTS + 2) { |url| Apart.call { ask(url, rounds, seconds) } }
    end

    def ask(url, rounds, seconds)
      found = Hash.new { |hash, name| hash[name] = [] }
      (rounds + 1).times do |round|
        @entries.each_with_index do |entry, index|
          figures = load("#{url}/#{index}#{entry.path}", entry, url, seconds)
          found[entry.name] << figures unless round.zero?
        end
      end
      found.to_h { |name, some| [name, some.transpose.map { |values| Castellan::Figures.median(values) }] }
    end

    def load(address, entry, url, seconds)
      before = processor_time(url)
      summary = Castellan::LoadTest.run(address, clients: CLIENTS, seconds: seconds, max_requests: 1_000_000, headers: entry.headers,
                                                 expect: [@status], timeout: 2)
      abort "#{@title}: #{entry.name} fails: #{summary.to_text}" if summary.failed > LOST
      [summary.rate, (processor_time(url) - before) * 1_000_000 / summary.successful]
    end

    def processor_time(url)
      Net::HTTP.get(URI("#{url}#{CPU}")).to_f
    end
  end
end
