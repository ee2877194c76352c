# frozen_string_literal: true

module Castellan
  module HTTP
    # Chooses the response's media type and checks the request's (JSON:API 1.1; RFC 9110 §12.5.1).
    #
    #   negotiation = Negotiation.new
    #   negotiation.response_type(env["HTTP_ACCEPT"])           # => "application/vnd.api+json"; nil means 406
    #   negotiation.request_type(env["CONTENT_TYPE"])           # => "application/vnd.api+json"; nil means 415
    #   negotiation.response_type!("application/vnd.api+json; charset=utf-8") # raises BadRequest, status 406
    #
    # Frozen. A type with an extension (`ext`) that is not supported is rejected; profiles are ignored.
    class Negotiation
      JSON_API = "application/vnd.api+json"
      # Longer header fields are parsed for each request.
      LONGEST = 300
      private_constant :LONGEST

      # @param types [Array<String>] supported response types, preferred first
      # @param extensions [Array<String>] URIs of the supported JSON:API extensions
      # @raise [ConfigurationError] if there is no type
      def initialize(types: [JSON_API], extensions: [])
        raise ConfigurationError, "types: needs a media type such as #{JSON_API.inspect}" if types.empty?

        @types = types.map { |type| type.dup.freeze }.freeze
        @extensions = extensions.dup.freeze
        @chosen = BoundedCache.new
        freeze
      end

      # @param accept [String, nil] Accept header
      # @return [String, nil] nil if no type is acceptable
      def response_type(accept)
        return @types.first if accept.nil? || accept.empty? || accept == "*/*"

        chosen = @types.index(accept) and return @types[chosen]
        accept.bytesize > LONGEST ? choose(accept) : @chosen.fetch(accept) { choose(accept) }
      end

      # @param content_type [String, nil] Content-Type header of a request with a body
      # @param extension [String, nil] an extension that the type must name
      # @return [String, nil] nil if the type is not supported
      def request_type(content_type, extension: nil)
        media_type = MediaType.parse(content_type)
        return unless media_type && @types.include?(media_type.type) && usable?(media_type)

        media_type.type if extension.nil? || extensions_of(media_type).include?(extension)
      end

      # @return [String] see {#response_type}
      # @raise [BadRequest] with status 406
      def response_type!(accept)
        response_type(accept) or
          raise BadRequest.new("Accept: #{shown(accept)} allows no media type of this response. #{offer}",
                               status: 406, title: "Not acceptable", header: "Accept")
      end

      # @return [String] see {#request_type}
      # @raise [BadRequest] with status 415
      def request_type!(content_type, extension: nil)
        request_type(content_type, extension: extension) or
          raise BadRequest.new("Content-Type: #{shown(content_type)} is not supported. #{offer}",
                               status: 415, title: "Unsupported media type", header: "Content-Type")
      end

      private

      def choose(accept)
        ranges = MediaType.list(accept)
        usable = ranges.select { |range| usable?(range) }
        return if ranges.any? { |range| range.type == JSON_API } && usable.none? { |range| range.type == JSON_API }

        best(usable)
      end

      # JSON:API allows only the parameters ext and profile.
      def usable?(media_type)
        return true if media_type.type != JSON_API || media_type.parameters.empty?

        (media_type.parameters.keys - %w[ext profile]).empty? && (extensions_of(media_type) - @extensions).empty?
      end

      def extensions_of(media_type)
        media_type.parameters["ext"].to_s.split
      end

      def best(ranges)
        weights = @types.to_h { |type| [type, weight(type, ranges)] }
        type, weight = weights.max_by.with_index { |(_, weight), index| [weight, -index] }
        type if weight.positive?
      end

      # The most specific matching range determines the weight (RFC 9110 §12.5.1).
      def weight(type, ranges)
        covering = ranges.select { |range| range.covers?(type) }
        specificity = covering.map(&:specificity).max
        covering.select { |range| range.specificity == specificity }.map(&:q).max || 0
      end

      def shown(value)
        value.nil? ? "(none)" : ClientText.shown(value, 200)
      end

      def offer
        text = "Write #{@types.join(' or ')}"
        return "#{text}." unless @types.include?(JSON_API)

        @extensions.empty? ? "#{text}, with no parameter but profile." : "#{text};ext=\"#{@extensions.join(" ")}\"."
      end
    end
  end
end
