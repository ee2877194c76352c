# frozen_string_literal: true

require "json"

module Castellan
  module Serve
    # Holds the members around the data of all documents, and the application's query parameters. Frozen.
    #
    #   frame = Frame.new(base_url: "https://api.example.org", jsonapi: {}, params: { "locale" => %w[de en] })
    #   frame.jsonapi                     # => {"version":"1.1"}
    #   frame.params("locale=de&sort=id") # => { "locale" => "de" }
    class Frame
      # Characters that clients send, but that paths and queries of a URI do not have (RFC 3986, section 3.3), such as brackets.
      NO_URI = %r{[^\w.~!$&'()*+,;=:@/?%-]}
      private_constant :NO_URI

      # Servers decode the path (`%0A`), which is part of links and of Location.
      # @param text [String] a path or query as the server has it
      # @return [String, nil] as it may be part of a URI; nil if it is not valid UTF-8
      def self.uri(text) = ClientText.utf8(text)&.gsub(NO_URI) { |character| ERB::Util.url_encode(character) }

      # @return [String, nil] the base of links, instead of the path where the application is mounted
      # @return [String, nil] the JSON of the top-level member `jsonapi`
      # @return [String, nil] the `describedby` link
      # @return [Hash{String => Array<String>, nil}] the application's own query parameters and their allowed
      #   values
      # @return [Purge, nil]
      # @return [Boolean] whether responses have Cache-Status
      attr_reader :base_url, :jsonapi, :described_by, :own, :purge, :cache_status

      # @param jsonapi [Hash, nil] the meta object of the member; nil omits the member
      # @raise [ConfigurationError] for an invalid base_url or parameter name
      def initialize(base_url: nil, jsonapi: nil, self_links: false, described_by: nil, params: {}, purge: nil,
                     cache_status: false)
        @base_url = base_url && url(base_url)
        @jsonapi = jsonapi && JSON.generate({ "version" => "1.1", "meta" => (jsonapi unless jsonapi.empty?) }.compact).freeze
        @self_links = self_links
        @described_by = described_by
        @purge = purge
        @cache_status = cache_status
        @own = params.to_h { |name, values| [name(name), values && values(name, values)] }.freeze
        freeze
      end

      # @return [Boolean] whether documents have any of these members
      def any?
        !@jsonapi.nil? || !@described_by.nil? || @self_links
      end

      # @param env [Hash] Rack's environment
      # @return [String, nil] the base of the links in this response
      def prefix(env)
        return base_url if base_url

        name = env["SCRIPT_NAME"]
        # A URL that begins with two slashes names another host.
        Frame.uri(name)&.sub(%r{\A/+}, "/") unless name.nil? || name.empty?
      end

      # @param path [String] the requested path
      # @return [Hash{String => String}] the top-level links
      def links(path, query)
        query = Frame.uri(query.to_s)
        target = query.nil? || query.empty? ? path : "#{path}?#{query}"
        { "self" => (target if @self_links), "describedby" => described_by }.compact
      end

      # @param path [String] the requested path
      # @return [Hash{String => Hash}] the top-level members
      def members(path, query)
        links = links(path, query)
        { "links" => (links unless links.empty?), "jsonapi" => (JSON.parse(jsonapi) if jsonapi) }.compact
      end

      # Refuses parameters where they would be ignored: of writes, linkage and operations. A client that sends
      # `DELETE /posts/1?filter[state]=draft` would lose a record that is no draft.
      # @param env [Hash] Rack's environment
      # @param also [Array<String>] other parameters that are accepted
      # @raise [BadRequest]
      def only_own!(env, *also)
        query = env["QUERY_STRING"].to_s
        name = Parameters.read(query).keys.find { |one| !own.key?(one) && !also.include?(one) } unless query.empty?
        return unless name

        name = Plan::Parameter.shown(name)
        Plan::Parameter.refuse(name, "#{name.inspect} is not supported by #{env["REQUEST_METHOD"]} of this URL")
      end

      # @param text [String] a query string
      # @return [Hash{String => String}] the application's parameters in the query string
      # @raise [BadRequest] if a value is not allowed
      def params(text)
        return {} if own.empty? || text.empty?

        Parameters.read(text).slice(*own.keys).to_h { |name, value| [name, checked(name, value)] }
      end

      private

      def checked(name, value)
        text = Plan::Parameter.text(name, value)
        allowed = own.fetch(name)
        return text if allowed.nil? || allowed.include?(text)

        Plan::Parameter.refuse(name,
                               "#{name} may not be #{Plan::Parameter.shown(text).inspect}#{Nearest.hint(Plan::Parameter.shown(text),
                                                                                                        allowed)}")
      end

      def url(given)
        return given.chomp("/").freeze if given.is_a?(String) && given.match?(%r{\A(?:https?:/)?/[^\s?#]+\z})

        raise ConfigurationError, "base_url #{given.inspect}: write what links begin with, such as \"https://api.example.org/v1\""
      end

      def name(given)
        name = given.to_s
        raise ConfigurationError, "param #{given.inspect} is a parameter of JSON:API; choose another name" if Plan::Request::FAMILIES.include?(name)
        raise ConfigurationError, "param #{given.inspect}: write letters, digits, - and _" unless name.match?(/\A[[:alnum:]][\w-]*\z/)

        name.freeze
      end

      def values(name, given)
        return given.map { |value| value.to_s.freeze }.freeze if given.respond_to?(:map)

        raise ConfigurationError, "param #{name.inspect}: in: must be an Array such as %w[de en], got #{given.inspect}"
      end
    end
  end
end
