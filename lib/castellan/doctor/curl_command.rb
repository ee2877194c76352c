# frozen_string_literal: true

require "optparse"
require "shellwords"

module Castellan
  module Doctor
    # Parses a curl command as a browser's "Copy as cURL (bash)" writes it.
    #
    #   CurlCommand.parse(%q(curl 'https://app.example/users' -H 'accept: */*' --compressed))  # => RackRequest
    #
    # Reads the URL, -H, -X, -I, -b (cookies as text), -A, -e and -u; raises for options that send a body;
    # ignores others. Drops Accept-Encoding, so that uncompressed bytes are counted, and If-None-Match and
    # If-Modified-Since, so that the response has a body.
    class CurlCommand
      HEADERS = { "-b" => "cookie", "-A" => "user-agent", "-e" => "referer" }.freeze
      NAMES = { "cookie" => "Cookie", "user-agent" => "User-Agent", "referer" => "Referer" }.freeze
      BODY = [%w[-d --data], %w[-F --form], %w[-T --upload-file], %w[--data-raw], %w[--data-binary], %w[--data-ascii],
              %w[--data-urlencode], %w[--json]].freeze
      IGNORED = [%w[-o --output], %w[-m --max-time], %w[-x --proxy], %w[-w --write-out], %w[-E --cert], %w[--connect-timeout],
                 %w[--retry], %w[--cacert], %w[--key], %w[--resolve], %w[--interface]].freeze
      # Ignored options without a value, which may be joined: -sSkL.
      FLAGS = %w[-s -S -k -L -v -i -f -g -q -n -N -j -O -a -# -0 -1 -2 -3 -4 -6].freeze
      LEFT_OUT = %w[accept-encoding if-none-match if-modified-since].freeze
      # Quoted strings, `$'…'`, which Chromium writes if a value contains a quote, and line continuations.
      QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"|\$'(?<ansi>(?:[^'\\]|\\.)*)'|(?<continued>\\\r?\n)/m
      ESCAPE = /(?<utf16>(?:\\u\h{4})+)|\\x(?<hex>\h{1,2})|\\(?<other>.)/m
      CONTROL = { "n" => "\n", "t" => "\t", "r" => "\r" }.freeze
      TOKEN = /\A\s*[!#$%&'*+.^`|~\w-]+\s*\z/
      private_constant :HEADERS, :NAMES, :BODY, :IGNORED, :FLAGS, :LEFT_OUT, :QUOTED, :ESCAPE, :CONTROL, :TOKEN

      # @param command [String]
      # @return [RackRequest]
      # @raise [Error] if the command has no URL, an unclosed quote, a body or an invalid header
      def self.parse(command) = new.call(command)

      def initialize
        @headers = {}
        @verb = "GET"
      end

      # @return [RackRequest]
      def call(command)
        words = words(command)
        words.shift if words.first == "curl"
        read(words) until words.empty?
        raise Error, "the curl command names no URL" unless @url

        RackRequest.new(@url.match?(%r{\A(?:https?://|/)}i) ? @url : "http://#{@url}", verb: @verb, headers: @headers)
      end

      private

      def words(command)
        Shellwords.split(command.gsub(QUOTED) { |text| $~[:continued] ? " " : $~[:ansi]&.then { |ansi| ansi_quoted(ansi) } || text })
      rescue ArgumentError
        raise Error, "the curl command cannot be read: a quote is not closed in #{command[0, 60].inspect}; " \
                     "copy it as cURL (bash), and put it between quotes that it does not hold itself"
      end

      # Browsers escape a character beyond 16 bits as a UTF-16 surrogate pair.
      def ansi_quoted(text)
        unescaped = text.gsub(ESCAPE) do
          match = Regexp.last_match
          if match[:utf16] then match[:utf16].scan(/\h{4}/).map(&:hex).pack("n*").force_encoding("UTF-16BE").encode("UTF-8")
          elsif match[:hex] then [match[:hex].hex].pack("U")
          else CONTROL.fetch(match[:other], match[:other])
          end
        end
        unescaped.shellescape
      end

      # Stops after an unknown option, which is then no longer among the words.
      def read(words)
        parser.order!(words) { |word| @url ||= word }
      rescue OptionParser::InvalidOption
        nil
      rescue OptionParser::ParseError => error
        raise Error, "the curl command cannot be read: #{error.message}"
      end

      def parser
        @parser ||= OptionParser.new do |options|
          options.on("-H", "--header LINE") { |line| header(line) }
          options.on("-X", "--request VERB") { |verb| @verb = verb }
          options.on("-I", "--head") { @verb = "HEAD" }
          options.on("-u", "--user PAIR") { |pair| @headers["Authorization"] = "Basic #{[pair].pack("m0")}" }
          options.on("--url URL") { |url| @url = url }
          HEADERS.each { |short, name| options.on(short, "--#{name} TEXT") { |text| @headers[NAMES.fetch(name)] = text } }
          BODY.each { |*short, long| options.on(*short, "#{long} BODY") { refuse_body(long) } }
          IGNORED.each { |*short, long| options.on(*short, "#{long} VALUE") { nil } }
          FLAGS.each { |flag| options.on(flag) { nil } }
        end
      end

      def refuse_body(name)
        raise Error, "the curl command sends a body (#{name}): the doctor repeats a request many times, so it sends GET and HEAD only"
      end

      # In curl, `Name;` sends a header without a value.
      def header(line)
        name, value = line.end_with?(";") && !line.include?(":") ? [line.chop, ""] : line.split(":", 2)
        raise Error, "the header #{line.inspect} is not of the form 'Name: value'" unless value && name.match?(TOKEN)

        @headers[name.strip] = value.strip unless LEFT_OUT.include?(name.strip.downcase)
      end
    end
  end
end
