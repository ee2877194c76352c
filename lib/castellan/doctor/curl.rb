# frozen_string_literal: true

require "shellwords"

module Castellan
  module Doctor
    # Parses a curl command as a browser's "Copy as cURL (bash)" writes it.
    #
    #   Curl.parse(%q(curl 'https://app.example/users' -H 'accept: */*' --compressed))  # => Request
    #
    # Reads the URL, -H, -X, -I, -b (cookies as text), -A, -e and -u, also joined (`-sXGET`); raises for
    # options that send a body; ignores others (--compressed, -s, -k …). Drops Accept-Encoding, so that
    # uncompressed bytes are counted, and If-None-Match and If-Modified-Since, so that the response has a
    # body.
    class Curl
      LONG = { "-H" => "--header", "-X" => "--request", "-I" => "--head", "-b" => "--cookie", "-A" => "--user-agent", "-e" => "--referer",
               "-u" => "--user", "-d" => "--data", "-F" => "--form", "-T" => "--upload-file", "-o" => "--output", "-m" => "--max-time",
               "-x" => "--proxy", "-w" => "--write-out", "-E" => "--cert" }.freeze
      HEADERS = { "--cookie" => "Cookie", "--user-agent" => "User-Agent", "--referer" => "Referer" }.freeze
      BODY = %w[--data --data-raw --data-binary --data-ascii --data-urlencode --json --form --upload-file].freeze
      PASSED_OVER = %w[--output --max-time --connect-timeout --retry --proxy --cacert --cert --key --write-out --resolve --interface].freeze
      WITH_VALUE = [*HEADERS.keys, *BODY, *PASSED_OVER, "--header", "--request", "--user", "--url"].freeze
      LEFT_OUT = %w[accept-encoding if-none-match if-modified-since].freeze
      # Quoted strings, `$'…'`, which Chromium writes if a value contains a quote, and line continuations.
      QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"|\$'(?<ansi>(?:[^'\\]|\\.)*)'|(?<continued>\\\r?\n)/m
      ESCAPE = /(?<utf16>(?:\\u\h{4})+)|\\x(?<hex>\h{1,2})|\\(?<other>.)/m
      CONTROL = { "n" => "\n", "t" => "\t", "r" => "\r" }.freeze
      TOKEN = /\A\s*[!#$%&'*+.^`|~\w-]+\s*\z/
      private_constant :LONG, :HEADERS, :BODY, :PASSED_OVER, :WITH_VALUE, :LEFT_OUT, :QUOTED, :ESCAPE,
                       :CONTROL, :TOKEN

      # @param command [String]
      # @return [Request]
      # @raise [Error] if the command has no URL, an unclosed quote, a body or an invalid header
      def self.parse(command)
        new(command).call
      end

      def initialize(command)
        @words = words(command)
        @headers = {}
        @verb = "GET"
      end

      # @return [Request]
      def call
        @words.shift if @words.first == "curl"
        take(@words.shift) until @words.empty?
        raise Error, "the curl command names no URL" unless @url

        Request.new(@url.match?(%r{\A(?:https?://|/)}i) ? @url : "http://#{@url}", verb: @verb, headers: @headers)
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

      def take(word)
        if word.start_with?("--") then option(*word.split("=", 2))
        elsif word.start_with?("-") && word.size > 1 then letters(word[1..])
        else @url ||= word
        end
      end

      # `-sXPOST` means -s and -X POST.
      def letters(rest)
        until rest.empty?
          name = LONG["-#{rest[0]}"]
          rest = rest[1..]
          next unless name
          return option(name, rest.empty? ? nil : rest) if WITH_VALUE.include?(name)

          option(name)
        end
      end

      def option(name, value = nil)
        value ||= @words.shift if WITH_VALUE.include?(name)
        case name
        when "--header" then header(value.to_s)
        when "--request" then @verb = value.to_s
        when "--head" then @verb = "HEAD"
        when "--user" then @headers["Authorization"] = "Basic #{[value].pack("m0")}"
        when "--url" then @url = value
        when *HEADERS.keys then @headers[HEADERS.fetch(name)] = value
        when *BODY then refuse_body(name)
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
