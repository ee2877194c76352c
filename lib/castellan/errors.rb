# frozen_string_literal: true

# Defines Castellan's errors, by who can fix them.
#
#   rescue Castellan::BadRequest => error      # the client: respond with 400 and error.to_h
#   rescue Castellan::ConfigurationError       # the developer, at boot
#   rescue Castellan::StoreError               # handled internally as a cache miss
module Castellan
  # The superclass of all errors.
  class Error < StandardError; end

  # Reports a mistake of the developer, at definition or at boot.
  class ConfigurationError < Error; end

  # Reports a declaration of something undefined; ends with the file, the line and the nearest correct name.
  class DeclarationError < ConfigurationError
    # @return [String, nil] "path:line" of the declaration
    attr_reader :location

    def initialize(message, location: nil)
      @text = message
      @location = location
      super(location ? "#{message} (#{location})" : message)
    end

    # @param resource [String] the name of the resource class
    # @return [DeclarationError] a copy whose message begins with the resource
    def of(resource)
      self.class.new("#{resource} #{@text}", location: location)
    end
  end

  # Reports that a store is unreachable or returned an invalid response. Callers treat it as a miss.
  class StoreError < Error; end

  # Reports a value that JSON cannot represent (e.g. invalid UTF-8), with the resource, id and member.
  class EncodingError < Error
    # @return [Array(Integer, Integer), nil] the indexes of the plan's node and member; the ORM's type may
    #   still convert the value
    attr_reader :place

    def initialize(message = nil, place: nil)
      @place = place
      super(message)
    end
  end

  # Reports a mistake of the client: a 400 with a JSON:API error object (JSON:API 1.1, "Errors").
  class BadRequest < Error
    # @!attribute status
    #   @return [Integer] the HTTP status
    # @!attribute parameter
    #   @return [String, nil] the invalid query parameter, e.g. "include"
    attr_reader :status, :parameter

    def initialize(detail, parameter: nil, status: 400, title: "Bad request")
      @parameter = parameter
      @status = status
      @title = title
      super(detail)
    end

    # @return [Hash] a JSON:API error object with String keys
    def to_h
      error = { "status" => status.to_s, "title" => @title, "detail" => message }
      error["source"] = { "parameter" => parameter } if parameter
      error
    end
  end
end
