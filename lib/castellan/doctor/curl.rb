# frozen_string_literal: true

module Castellan
  module Doctor
    # Reads a command that a browser's "Copy as cURL" wrote.
    #
    #   Curl.parse(%q(curl 'https://app.example/users?role=admin' -H 'authorization: Bearer abc' --compressed))  # => Request
    #
    # Understood: the URL, -H, -X, -I, -b (cookies as text), -A, -e, -u, also joined (`-sXGET`). What sends a body is refused, what does
    # not matter to the application (--compressed, -s, -k …) is passed over. The header Accept-Encoding is left out, so that the body's
    # own bytes are counted, and so are If-None-Match and If-Modified-Since, so that there is a body.
    class Curl
      LONG = { "-H" => "--header", "-X" => "--request", "-I" => "--head", "-b" => "--cookie", "-A" => "--user-agent", "-e" => "--referer",
               "-u" => "--user", "-d" => "--data", "-F" => "--form", "-T" => "--upload-file", "-o" => "--output", "-m" => "--max-time",
               "-x" => "--proxy", "-w" => "--write-out", "-E" => "--cert" }.freeze
      HEADERS = { "--cookie" => "Cookie", "--user-agent" => "User-Agent", "--referer" => "Referer" }.freeze
      BODY = %w[--data --data-raw --data-binary --data-ascii --data-urlencode --json --form --upload-file].freeze
      PASSED_OVER = %w[--output --max-time --connect-timeout --retry --proxy --cacert --cert --key --write-out --resolve --interface].freeze
      WITH_VALUE = [*HEADERS.keys, *BODY, *PASSED_OVER, "--header", "--request", "--user", "--url"].freeze
      LEFT_OUT = %w[accept-encoding if-none-match if-modified-since].freeze
      TOKEN = /\A\s*[!#$%&'*+.^`|~\w-]+\s*\z/
      private_constant :LONG, :HEADERS, :BODY, :PASSED_OVER, :WITH_VALUE, :LEFT_OUT, :TOKEN

      # @param command [String]
      # @return [Request]
      # @raise [Unwell]
      def self.parse(command)
        new(command).call
      end

      def initialize(command)
        @words = ShellWords.split(command)
        @headers = {}
        @verb = "GET"
      end

      # @return [Request]
      def call
        @words.shift if @words.first == "curl"
        take(@words.shift) until @words.empty?
        raise Unwell, "the curl command names no URL" unless @url

        Request.new(@url.match?(%r{\A(?:https?://|/)}i) ? @url : "http://#{@url}", verb: @verb, headers: @headers)
      end

      private

      def take(word)
        if word.start_with?("--") then option(*word.split("=", 2))
        elsif word.start_with?("-") && word.size > 1 then letters(word[1..])
        else @url ||= word
        end
      end

      # `-sXPOST` is -s and -X with POST.
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
        raise Unwell, "the curl command sends a body (#{name}): the doctor repeats a request many times, so it sends GET and HEAD only"
      end

      # `Name;` is curl's way to send a header without a value.
      def header(line)
        name, value = line.end_with?(";") && !line.include?(":") ? [line.chop, ""] : line.split(":", 2)
        raise Unwell, "the header #{line.inspect} is not of the form 'Name: value'" unless value && name.match?(TOKEN)

        @headers[name.strip] = value.strip unless LEFT_OUT.include?(name.strip.downcase)
      end
    end
  end
end
