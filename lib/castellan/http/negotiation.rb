# frozen_string_literal: true

module Castellan
  module HTTP
    # Which media type to answer in, and whether a body's media type is understood, by JSON:API 1.1, "Content Negotiation",
    # and RFC 9110 §12.5.1.
    #
    #   negotiation = Negotiation.new(extensions: ["https://jsonapi.org/ext/atomic"])
    #   negotiation.response_type(env["HTTP_ACCEPT"])&.to_s     # => "application/vnd.api+json"; nil means 406
    #   negotiation.request_type(env["CONTENT_TYPE"])           # => a MediaType; nil means 415
    #   negotiation.response_type!("application/vnd.api+json; charset=utf-8") # raises BadRequest, status 406, saying why
    #
    # One object a server, frozen; the usual Accept fields are answered without parsing. Send `Vary: Accept` with the answer.
    class Negotiation
      JSON_API = "application/vnd.api+json"

      # @param types [Array<String>] what can be answered, the preferred one first
      # @param extensions [Array<String>] URIs of JSON:API extensions that are supported
      # @param profiles [Array<String>] URIs of JSON:API profiles that are recognised
      def initialize(types: [JSON_API], extensions: [], profiles: [])
        raise ConfigurationError, "types: needs a media type such as #{JSON_API.inspect}" if types.empty?

        @types = types.map { |type| type.dup.freeze }.freeze
        @extensions = extensions.dup.freeze
        @profiles = profiles.dup.freeze
        @defaults = @types.to_h { |type| [type, MediaType.new(type, {}.freeze, 1.0).freeze] }.freeze
        freeze
      end

      # @param accept [String, nil] the Accept field
      # @return [MediaType, nil] what to send, with the extensions and profiles to apply; nil when nothing is acceptable
      def response_type(accept)
        return @defaults[@types.first] if accept.nil? || accept.empty? || accept == "*/*"
        return @defaults[accept] if @defaults.key?(accept)

        ranges = MediaType.list(accept)
        return if ranges.any? { |range| range.type == JSON_API } && ranges.none? { |range| range.type == JSON_API && usable?(range) }

        best(ranges.select { |range| range.type != JSON_API || usable?(range) })
      end

      # @param content_type [String, nil] the Content-Type field of a request with a body
      # @return [MediaType, nil] nil when it is not supported
      def request_type(content_type)
        media_type = MediaType.parse(content_type)
        return unless media_type && @types.include?(media_type.type)

        media_type if media_type.type != JSON_API || usable?(media_type)
      end

      # @raise [BadRequest] with status 406
      def response_type!(accept)
        response_type(accept) or
          raise BadRequest.new("Nothing can be sent that Accept: #{shown(accept)} takes. #{offer}", status: 406, title: "Not acceptable")
      end

      # @raise [BadRequest] with status 415
      def request_type!(content_type)
        request_type(content_type) or
          raise BadRequest.new("Content-Type: #{shown(content_type)} is not supported. #{offer}",
                               status: 415, title: "Unsupported media type")
      end

      private

      # No parameter but ext and profile, and no extension that is not supported.
      def usable?(media_type)
        media_type.parameters.each_key { |name| return false if name != "ext" && name != "profile" }
        (uris(media_type, "ext") - @extensions).empty?
      end

      def best(ranges)
        candidates = @types.flat_map { |type| candidates_for(type, ranges) }
        candidates.each_with_index.max_by { |(_, q), index| [q, -index] }&.first&.first
      end

      # The most specific range that covers a type decides (RFC 9110 §12.5.1); of JSON:API each instance is a wish of its own.
      def candidates_for(type, ranges)
        covering = ranges.select { |range| range.covers?(type) }
        specificity = covering.map(&:specificity).max
        covering.select { |range| range.specificity == specificity && range.q.positive? }
                .map { |range| [type == JSON_API ? applied(range) : @defaults[type], range.q] }
      end

      def applied(range)
        parameters = { "ext" => uris(range, "ext"), "profile" => uris(range, "profile") & @profiles }
        parameters = parameters.reject { |_, uris| uris.empty? }.transform_values { |uris| uris.join(" ") }
        parameters.empty? ? @defaults[JSON_API] : MediaType.new(JSON_API, parameters.freeze, 1.0).freeze
      end

      def uris(media_type, name)
        media_type.parameters[name].to_s.split
      end

      def shown(value)
        value.nil? ? "(none)" : ClientText.shown(value, 200)
      end

      def offer
        text = "Write #{@types.join(' or ')}"
        return "#{text}." unless @types.include?(JSON_API)

        "#{text}, with no parameters but ext and profile#{", and ext of #{@extensions.join(', ')}" if @extensions.any?}."
      end
    end
  end
end
