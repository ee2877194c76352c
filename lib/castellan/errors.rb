# frozen_string_literal: true

# Defines Castellan's errors, grouped by who can fix them.
#
#   rescue Castellan::BadRequest => error      # the client: respond with 400 and error.to_h
#   rescue Castellan::ConfigurationError       # the developer, at boot
#   rescue Castellan::StoreError               # nobody: Castellan treats it as a cache miss
module Castellan
  # Superclass of all errors.
  class Error < StandardError; end

  # Raised for a mistake of the developer, when a class is defined or at boot.
  class ConfigurationError < Error
    # Requires the library of an adapter.
    # @param gem [String] also the name that is required
    # @param user [String] the adapter
    # @raise [ConfigurationError] if the gem is missing
    def self.require_gem(gem, user)
      require gem
    rescue LoadError => error
      raise unless error.path == gem

      raise self, "#{user} needs #{gem}: write gem \"#{gem}\" into the Gemfile"
    end
  end

  # Raised for a declaration of something undefined.
  # The message has the file, the line and the nearest correct name.
  class DeclarationError < ConfigurationError
    # @return [String, nil] "path:line" of the declaration
    attr_reader :location

    def initialize(message, location: nil)
      @text = message
      @location = location
      super(location ? "#{message} (#{location})" : message)
    end

    # @param resource [String] the name of the resource class
    # @return [DeclarationError] a copy with the name of the resource at the beginning of the message
    def of(resource)
      self.class.new("#{resource} #{@text}", location: location)
    end
  end

  # Raised if a store is unreachable or its response is invalid. Callers treat it as a cache miss.
  class StoreError < Error; end

  # Raised for a value that JSON cannot represent (e.g. invalid UTF-8).
  # The message has resource, id and member.
  class EncodingError < Error
    # @return [Array(Integer, Integer), nil] the indexes of the plan's node and member, if the ORM's type may
    #   be able to convert the value
    attr_reader :place

    def initialize(message = nil, place: nil)
      @place = place
      super(message)
    end
  end

  # Raised for a mistake of the client. Has a JSON:API error object (JSON:API 1.1, "Errors").
  class BadRequest < Error
    # @!attribute status
    #   @return [Integer] the HTTP status
    # @!attribute parameter
    #   @return [String, nil] the invalid query parameter, e.g. "include"
    # @!attribute pointer
    #   @return [String, nil] a JSON Pointer to the invalid part of the body, e.g. "/data/attributes/title"
    # @!attribute headers
    #   @return [Hash{String => String}] header fields of the response
    attr_reader :status, :parameter, :pointer, :headers

    def initialize(detail, parameter: nil, pointer: nil, header: nil, status: 400, title: "Bad request", code: nil, headers: {},
                   links: nil, meta: nil)
      @parameter = parameter
      @pointer = pointer
      @header = header
      @status = status
      @title = title
      @code = code
      @headers = headers
      @links = links
      @meta = meta
      super(detail)
    end

    # @return [Hash] a JSON:API error object with String keys
    def to_h
      source = { "parameter" => parameter, "pointer" => pointer, "header" => @header }.compact
      { "links" => @links, "status" => status.to_s, "code" => @code, "title" => @title, "detail" => message,
        "source" => (source unless source.empty?), "meta" => @meta }.compact
    end

    # @return [Array<Hash>] the error objects of the response
    def errors
      [to_h]
    end

    # Names the operation of a batch in an error that has no source yet.
    # @param pointer [String]
    # @return [self]
    def at(pointer)
      @pointer ||= pointer unless parameter || @header
      self
    end

    # Names the query parameter in an error that has no source yet.
    # @param parameter [String]
    # @return [self]
    def in_parameter(parameter)
      @parameter ||= parameter unless pointer || @header
      self
    end
  end

  # Raised with all mistakes in the document of a request.
  # The status is that of the errors, or 400 if they differ (JSON:API 1.1, "Processing Errors").
  class InvalidDocument < BadRequest
    # @return [Array<Hash>] the error objects of the response
    attr_reader :errors

    # @param mistakes [Array<BadRequest>] at least one
    def initialize(mistakes)
      statuses = mistakes.map(&:status).uniq
      @errors = mistakes.flat_map(&:errors)
      super(mistakes.map(&:message).join("; "), status: statuses.one? ? statuses.first : 400)
    end

    # @return [self]
    def at(pointer)
      @errors = @errors.map { |error| { **error, "source" => error["source"] || { "pointer" => pointer } } }
      self
    end
  end
end
