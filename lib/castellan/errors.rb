# frozen_string_literal: true

# The errors of Castellan, split by who must act.
#
#   rescue Castellan::BadRequest => error      # the client: answer 400 with error.to_h
#   rescue Castellan::ConfigurationError       # the developer, at boot
#   rescue Castellan::StoreError               # nobody: the caller treats it as a miss
module Castellan
  # The parent of all of them.
  class Error < StandardError; end

  # A mistake of the developer, raised where it was made: at definition or at boot.
  class ConfigurationError < Error; end

  # A declaration that names something that is not there. The message ends with the file, the line and the nearest right name.
  class DeclarationError < ConfigurationError
    # @return [String, nil] "path:line" of the declaration
    attr_reader :location

    def initialize(message, location: nil)
      @text = message
      @location = location
      super(location ? "#{message} (#{location})" : message)
    end

    # @param resource [String] the name of the class that is declared
    # @return [DeclarationError] the same, which says whose it is
    def of(resource)
      self.class.new("#{resource} #{@text}", location: location)
    end
  end

  # A store could not be reached or answered nonsense. Never reaches the client.
  class StoreError < Error; end

  # A value that cannot be written as JSON (invalid UTF-8); names the resource, id and member.
  class EncodingError < Error
    # @return [Array(Integer, Integer), nil] the node of the plan and its member, where the ORM's type may know what the value is
    attr_reader :place

    def initialize(message = nil, place: nil)
      @place = place
      super(message)
    end
  end

  # A mistake of the client: becomes a 400 with a JSON:API error object (JSON:API 1.1, "Errors").
  class BadRequest < Error
    # @return [Integer] the HTTP status
    # @return [String, nil] the query parameter at fault, e.g. "include"
    attr_reader :status, :parameter

    def initialize(detail, parameter: nil, status: 400, title: "Bad request")
      @parameter = parameter
      @status = status
      @title = title
      super(detail)
    end

    # @return [Hash] a JSON:API error object
    def to_h
      error = { "status" => status.to_s, "title" => @title, "detail" => message }
      error["source"] = { "parameter" => parameter } if parameter
      error
    end
  end
end
