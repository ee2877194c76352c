# frozen_string_literal: true

require "uri"

module Castellan
  module Profile
    # Removes secrets from the query string, path and headers of a request before they are stored. Frozen.
    #
    #   redaction = Redaction.new(filter: [:email])
    #   redaction.query("page=2&email=a%40b.c")   # => "page=2&email=[FILTERED]"
    #   redaction.headers(env)                    # => { "accept" => "application/json", … }
    #
    # Filters work as in Rails' `config.filter_parameters`: a part of the name (String or Symbol,
    # case-insensitive), a Regexp, or a Proc that receives name and value and modifies the value.
    # `user[card][code]` matches "code", "card.code" and "user". Names like password, token and secret are
    # always filtered (ALWAYS).
    class Redaction
      ALWAYS = %w[passw secret token _key apikey crypt salt certificate otp ssn cvv cvc signature session authorization
                  bearer credential].freeze
      SHORT = /\A(?:auth|jwt|pass|pin|pwd|sid|sig)\z/i # only as the whole name: "auth" is part of author
      MARK = "[FILTERED]"
      HEADERS = %w[accept accept-encoding accept-language cache-control castellan-profile content-length content-type host if-match
                   if-modified-since if-none-match origin prefer range user-agent x-requested-with].freeze
      NAMES = HEADERS.to_h do |name|
        key = name.upcase.tr("-", "_")
        [name, key.start_with?("CONTENT_") ? key : "HTTP_#{key}"]
      end.freeze
      LONGEST = 2_000
      CUT = " …"
      private_constant :SHORT, :NAMES, :LONGEST, :CUT

      # @param filter [Array<String, Symbol, Regexp, Proc>]
      def initialize(filter: [])
        procs, names = Array(filter).partition { |one| one.respond_to?(:call) }
        @procs = procs.freeze
        @names = Regexp.union([SHORT, *ALWAYS, *names].map { |one| one.is_a?(Regexp) ? one : /#{Regexp.escape(one.to_s)}/i })
        freeze
      end

      # @param query [String, nil] a query string
      # @return [String] UTF-8, at most LONGEST characters
      def query(query)
        return "" if query.nil? || query.empty?

        Redaction.text(query.b.split(/([&;])/).map { |part| parameter(part) }.join)
      end

      # @param path [String]
      # @param parameters [Hash] route parameters
      # @return [String] the path; a MARK replaces segments that contain secret parameters
      def path(path, parameters)
        secret = parameters.select { |name, value| value.is_a?(String) && secret?(name.to_s, value) }
                           .flat_map { |_name, value| value.scrub("?").b.split("/") }.reject(&:empty?)
        return path if secret.empty?

        path.split("/", -1).map { |part| secret.any? { |value| holds?(decoded(part).b, value) } ? MARK : part }.join("/")
      end

      # @param env [Hash] Rack environment
      # @return [Hash{String => String}] the headers to keep; secrets in their URLs are redacted
      def headers(env)
        NAMES.filter_map { |name, key| [name, Redaction.text(address(env[key]))] if env[key].is_a?(String) }.to_h
      end

      # @param text [String] untrusted input
      # @return [String] valid UTF-8, at most `longest` characters
      def self.text(text, longest = LONGEST)
        text = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
        text.size > longest ? "#{text[0, longest]}#{CUT}" : text
      end

      private

      def parameter(part)
        name, value = part.split("=", 2)
        return part if value.nil? || value.empty?

        secret?(decoded(name), decoded(value)) ? "#{name}=#{MARK}" : part
      end

      def secret?(name, value)
        steps = name.split(/[\[\]]+/)
        return true if [name, steps.join("."), *steps].any? { |one| @names.match?(one) }

        @procs.any? { |filter| changes?(filter, steps.last.to_s, value) }
      end

      # As in Rails, the Proc receives the innermost name, a value that it may modify, and, with three
      # parameters, all parameters of the request.
      def changes?(filter, name, value)
        copy = +value.dup
        filter.arity == 1 ? filter.call(copy) : filter.call(*[name, copy, {}].first(filter.arity.abs.clamp(2, 3)))
        copy != value
      rescue StandardError
        true # redact if the filter raises
      end

      # A segment may append a format or another value to the secret. Short values occur inside of other
      # words, so they must match exactly. Long values may have been cut.
      def holds?(part, value)
        part == value || part.start_with?("#{value}.".b) || (value.size > 3 && part.include?(value)) ||
          (part.size > 3 && value.start_with?(part.delete_suffix(CUT.b)))
      end

      # Removes credentials before an @, and redacts the query string.
      def address(text) = text.b.gsub(%r{//[^/@\s]*@}n, "//").sub(/(?<=\?).+/mn) { |query| query(query).b }

      # Text that cannot be decoded is compared as it is.
      def decoded(text)
        URI.decode_www_form_component(text.dup.force_encoding(Encoding::UTF_8)).scrub("?")
      rescue ArgumentError
        text.b.force_encoding(Encoding::UTF_8).scrub("?")
      end
    end
  end
end
