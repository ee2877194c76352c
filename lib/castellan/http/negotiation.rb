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
    # Frozen. JSON:API extensions are not supported, so a type with `ext` is rejected; profiles are ignored.
    class Negotiation
      JSON_API = "application/vnd.api+json"

      # @param types [Array<String>] supported response types, preferred first
      # @raise [ConfigurationError] if it is empty
      def initialize(types: [JSON_API])
        raise ConfigurationError, "types: needs a media type such as #{JSON_API.inspect}" if types.empty?

        @types = types.map { |type| type.dup.freeze }.freeze
        freeze
      end

      # @param accept [String, nil] Accept header
      # @return [String, nil] nil if no type is acceptable
      def response_type(accept)
        return @types.first if accept.nil? || accept.empty? || accept == "*/*"

        chosen = @types.index(accept) and return @types[chosen]
        ranges = MediaType.list(accept)
        usable = ranges.select { |range| usable?(range) }
        return if ranges.any? { |range| range.type == JSON_API } && usable.none? { |range| range.type == JSON_API }

        best(usable)
      end

      # @param content_type [String, nil] Content-Type header of a request with a body
      # @return [String, nil] nil if it is not supported
      def request_type(content_type)
        media_type = MediaType.parse(content_type)
        media_type.type if media_type && @types.include?(media_type.type) && usable?(media_type)
      end

      # @return [String] see {#response_type}
      # @raise [BadRequest] with status 406
      def response_type!(accept)
        response_type(accept) or
          raise BadRequest.new("Nothing can be sent that Accept: #{shown(accept)} takes. #{offer}", status: 406, title: "Not acceptable")
      end

      # @return [String] see {#request_type}
      # @raise [BadRequest] with status 415
      def request_type!(content_type)
        request_type(content_type) or
          raise BadRequest.new("Content-Type: #{shown(content_type)} is not supported. #{offer}",
                               status: 415, title: "Unsupported media type")
      end

      private

      # JSON:API allows only the parameters ext and profile; ext is not supported.
      def usable?(media_type)
        media_type.type != JSON_API || (media_type.parameters.keys - ["profile"]).empty?
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

        "#{text}, with no parameter but profile."
      end
    end
  end
end
