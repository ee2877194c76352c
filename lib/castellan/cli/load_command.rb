# frozen_string_literal: true

require_relative "../load_test"

module Castellan
  module CLI
    # Runs `castellan load URL` (or `castellan siege`): a closed-loop load test with siege's figures.
    #
    #   Castellan::CLI::LoadCommand.new(%w[http://127.0.0.1:3000/posts -c 10 -t 5]).call # => 0
    #
    # The exit status is 0 if every request succeeded; 1 if a request failed or nothing was measured; 2 for an
    # invalid URL or option; 130 after Ctrl-C, which prints the figures so far.
    class LoadCommand < Command
      INTERRUPTED = 130
      USAGE = "castellan load URL [options]"

      def self.summary = "puts load on a URL and prints rates, response times and percentiles"

      private

      def run(*urls)
        raise WrongArguments, "give one URL, got #{urls.size}" unless urls.size == 1

        test = arguments { LoadTest::Run.new(urls.first, progress: progress, **@options) }
        ledger
        report(measure(test))
      end

      def measure(test)
        previous = trap("INT") { test.stop }
        test.call
      ensure
        trap("INT", previous || "DEFAULT")
        @err.print "\r\e[K" if progress
      end

      def report(result)
        @out.puts(@json ? json(result) : result.to_text)
        note(result) if ledger && result.successful.positive? && !result.interrupted?
        @err.puts "castellan load: no request succeeded" if result.successful.zero? && !result.interrupted?
        return INTERRUPTED if result.interrupted?

        result.ok? ? 0 : 1
      end

      def note(result)
        request = "#{@options.fetch(:http_method, "GET")} #{result.url.sub(%r{(?<=://)[^/?#]*@}, "")}"
        keep_alive = "keep-alive off" if @options[:keep_alive] == false
        conditions = [Figures.counted(result.clients, "client"), keep_alive].compact.join(", ")
        ledger.add(request: request, step: @step, conditions: conditions, figures: result.to_h)
        @out.puts("", ledger.to_s(request)) unless @json
      end

      def json(result)
        require "json"
        JSON.pretty_generate({ url: result.url, clients: result.clients, successful: result.successful, failed: result.failed,
                               reasons: result.reasons, elapsed_s: result.elapsed.round(3) }.merge(result.to_h))
      end

      # Overwrites one line, but only on a terminal.
      def progress
        return unless @err.respond_to?(:tty?) && @err.tty?

        @progress ||= ->(seconds, requests) { @err.print format("\r%5.1f s %8d requests", seconds, requests) }
      end

      def options(parser)
        @options = { headers: {} }
        amounts(parser)
        what_is_sent(parser)
        what_comes_back(parser)
      end

      def amounts(options)
        options.separator "Amount (default: 10 clients for 5 seconds, at most 10,000 requests)"
        options.on("-c", "--clients N", Integer, "clients at the same time") { |number| @options[:clients] = number }
        options.on("-r", "--repetitions N", Integer, "requests per client") { |number| @options[:repetitions] = number }
        options.on("-t", "--seconds SECONDS", Float, "duration in seconds") { |number| @options[:seconds] = number }
        options.on("-n", "--max-requests N", Integer, "requests of all clients together") { |number| @options[:max_requests] = number }
      end

      def what_is_sent(options)
        options.separator "\nRequests"
        header_option(options, @options[:headers])
        options.on("-I", "--head", "HEAD instead of GET") { @options[:http_method] = "HEAD" }
        options.on("--[no-]keep-alive", "reuse connections (default: yes)") { |value| @options[:keep_alive] = value }
        options.on("-k", "--insecure", "do not verify the TLS certificate") { @options[:verify] = false }
      end

      def what_comes_back(options)
        options.separator "\nResponses"
        options.on("--expect STATUSES", "statuses that count as success, such as 200,304 (default: 200-299)") do |list|
          @options[:expect] = statuses(list)
        end
        options.on("--timeout SECONDS", Float, "seconds for one response (default: 30)") { |number| @options[:timeout] = number }
        options.on("--json", "print JSON") { @json = true }
        ledger_options(options)
      end

      def statuses(list)
        list.split(",").map do |text|
          case text.strip
          when /\A\d{3}\z/ then text.to_i
          when /\A(\d{3})-(\d{3})\z/ then (Regexp.last_match(1).to_i)..(Regexp.last_match(2).to_i)
          else raise OptionParser::InvalidArgument, "#{text.inspect}: write statuses such as 200,304 or 200-299"
          end
        end
      end
    end
  end
end
