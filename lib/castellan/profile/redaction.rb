# frozen_string_literal: true

module Castellan
  module Profile
    # What of a request line and its headers may be kept: a chosen few headers, and parameters without the values of secret ones.
    #
    #   redaction = Redaction.new(filter: [:email])
    #   redaction.query("page=2&email=a%40b.c")   # => "page=2&email=[FILTERED]"
    #   redaction.headers(env)                    # => { "accept" => "application/json", "host" => "localhost" }
    #
    # A filter is a part of a name (a String or Symbol, whatever its case), a Regexp, or a Proc of name and value that changes the value, as
    # in Rails' `config.filter_parameters`. Names like password, token and secret are always on it. Frozen.
    class Redaction
      ALWAYS = %w[passw secret token _key apikey crypt salt certificate otp ssn cvv cvc signature session authorization].freeze
      MARK = "[FILTERED]"
      HEADERS = %w[accept accept-encoding accept-language cache-control castellan-profile content-length content-type host if-match
                   if-modified-since if-none-match origin prefer range user-agent x-requested-with].freeze
      NEVER = %w[authorization cookie set-cookie proxy-authorization castellan-token x-csrf-token x-api-key].freeze
      LONGEST = 2_000
      private_constant :NEVER, :LONGEST

      # @param filter [Array<String, Symbol, Regexp, Proc>]
      # @param headers [Array<String>] to keep besides HEADERS
      def initialize(filter: [], headers: [])
        procs, names = Array(filter).partition { |one| one.respond_to?(:call) }
        @procs = procs.freeze
        @names = Regexp.union([*ALWAYS, *names].map { |one| one.is_a?(Regexp) ? one : /#{Regexp.escape(one.to_s)}/i })
        @headers = [*HEADERS, *headers.map { |name| checked(name.to_s.downcase) }].uniq.to_h { |name| [name, rack_name(name)] }.freeze
        freeze
      end

      # @param query [String, nil] a query string
      # @return [String] UTF-8, at most LONGEST characters
      def query(query)
        return "" if query.nil? || query.empty?

        Redaction.text(query.b.split(/([&;])/).map { |part| parameter(part) }.join)
      end

      # @param env [Hash] of Rack
      # @return [Hash{String => String}]
      def headers(env)
        @headers.filter_map { |name, key| [name, Redaction.text(env[key])] if env[key].is_a?(String) }.to_h
      end

      # @param text [String] from outside
      # @return [String] UTF-8 and not longer than LONGEST characters
      def self.text(text)
        text = text.dup.force_encoding(Encoding::UTF_8)
        text = text.scrub("?") unless text.valid_encoding?
        text.size > LONGEST ? "#{text[0, LONGEST]} …" : text
      end

      private

      def parameter(part)
        name, value = part.split("=", 2)
        return part if value.nil? || value.empty?

        plain = decoded(name)
        return "#{name}=#{MARK}" if @names.match?(plain)

        @procs.empty? ? part : "#{name}=".b << changed(plain, value).b
      end

      def changed(name, value)
        @procs.each do |filter|
          copy = +decoded(value)
          filter.arity == 1 ? filter.call(copy) : filter.call(name, copy)
          return MARK if copy != decoded(value)
        end
        value
      rescue StandardError
        MARK # a filter that fails must not let through what it was meant for
      end

      # A name may be written in percent signs twice over; what cannot be read is taken as it stands.
      def decoded(text)
        URI.decode_www_form_component(text.dup.force_encoding(Encoding::UTF_8)).scrub("?")
      rescue ArgumentError
        text.b.force_encoding(Encoding::UTF_8).scrub("?")
      end

      def checked(name)
        return name unless NEVER.include?(name)

        raise ConfigurationError, "headers: #{name} is a secret and never kept; name another header"
      end

      def rack_name(name)
        key = name.upcase.tr("-", "_")
        %w[CONTENT_TYPE CONTENT_LENGTH].include?(key) ? key : "HTTP_#{key}"
      end
    end
  end
end
