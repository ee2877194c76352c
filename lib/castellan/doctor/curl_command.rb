# frozen_string_literal: true

require "optparse"
require "shellwords"

module Castellan
  module Doctor
    # Parses a curl command, as a browser writes it for "Copy as cURL (bash)".
    #
    #   CurlCommand.parse(%q(curl 'https://app.example/users' -H 'accept: */*' --compressed))  # => RackRequest
    #
    # Reads the URL, -H, -X, -I, -b (cookies as text), -A, -e and -u, ignores options that only change what curl
    # prints or how it connects, and raises for others. Stops at a pipe, a redirection or the shell's next command.
    # Drops Accept-Encoding, to count uncompressed bytes, and If-None-Match and If-Modified-Since, so that the
    # response has a body.
    module CurlCommand
      LEFT_OUT = %w[accept-encoding if-none-match if-modified-since].freeze
      IGNORED = %w[-k -s -S -L -v -g -i -f --compressed --insecure --silent --show-error --location --verbose --globoff
                   --include --fail --http1.1 --http2 --path-as-is].freeze
      # Quoted strings, `$'…'` (Chromium's notation for a value with a quote), line continuations, and the rest
      # after `|`, `>`, `;`, `&&` or `& `. An `&` inside a URL belongs to it.
      QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"|\$'(?<ansi>(?:[^'\\]|\\.)*)'|(?<continued>\\\r?\n)|\\.|(?<rest>(?:[|;<>]|\s\d>|&(?![^&>\s])).*)/m
      ESCAPE = /(?<utf16>(?:\\u\h{4})+)|\\x(?<hex>\h{1,2})|\\(?<other>.)/m
      CONTROL = { "n" => "\n", "t" => "\t", "r" => "\r" }.freeze
      TOKEN = /\A\s*[!#$%&'*+.^`|~\w-]+\s*\z/
      private_constant :LEFT_OUT, :IGNORED, :QUOTED, :ESCAPE, :CONTROL, :TOKEN

      class << self
        # @return [RackRequest]
        # @raise [Error] if the command has no URL, an unclosed quote, another option or an invalid header
        def parse(command)
          headers = {}
          verb = { verb: "GET" }
          url, *more = parser(headers, verb).parse(words(command).drop_while { |word| word == "curl" })
          raise Error, "the curl command has no URL" unless url
          raise Error, "the curl command has more than one URL (#{[url, *more].join(", ")}); copy it as cURL (bash)" if more.any?

          RackRequest.new(url.match?(%r{\A(?:https?://|/)}i) ? url : "http://#{url}", headers: headers, **verb)
        rescue OptionParser::ParseError => error
          raise Error, "the curl command cannot be used: #{error.message}; the doctor repeats a request, " \
                       "so it sends GET and HEAD only, without a body"
        end

        private

        def words(command)
          command = command.gsub(QUOTED) do |text|
            $~[:continued] || $~[:rest] ? " " : $~[:ansi]&.then { |ansi| ansi_quoted(ansi) } || text
          end
          Shellwords.split(command)
        rescue ArgumentError
          raise Error, "the curl command cannot be read: a quote is not closed in #{command[0, 60].inspect}; " \
                       "copy it as cURL (bash), and put it between quotes that it does not contain itself"
        end

        # Browsers write a character beyond 16 bits as a UTF-16 surrogate pair.
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

        def parser(headers, verb)
          OptionParser.new do |options|
            options.on("-H", "--header LINE") { |line| header(headers, line) }
            options.on("-X", "--request VERB") { |name| verb[:verb] = name }
            options.on("-I", "--head") { verb[:verb] = "HEAD" }
            options.on("-u", "--user PAIR") { |pair| headers["Authorization"] = "Basic #{[pair].pack("m0")}" }
            options.on("-b", "--cookie TEXT") { |text| headers["Cookie"] = text }
            options.on("-A", "--user-agent TEXT") { |text| headers["User-Agent"] = text }
            options.on("-e", "--referer TEXT") { |text| headers["Referer"] = text }
            options.on(*IGNORED) { nil }
            options.on("-o", "--output FILE", "-w", "--write-out TEXT", "-m", "--max-time SECONDS") { nil }
          end
        end

        # In curl, `Name;` sends a header without a value.
        def header(headers, line)
          name, value = line.end_with?(";") && !line.include?(":") ? [line.chop, ""] : line.split(":", 2)
          raise Error, "the header #{line.inspect} is not of the form 'Name: value'" unless value && name.match?(TOKEN)

          headers[name.strip] = value.strip unless LEFT_OUT.include?(name.strip.downcase)
        end
      end
    end
  end
end
