# frozen_string_literal: true

# Parses and checks `page[number]` and `page[size]` of a request.
#
#   page = Page.new({ "number" => "2" })
#   page.number # => 2
#   page.size   # => 20
#   page.links(5_000) { |number| "/mail-logs?page[number]=#{number}" } # => {"first" => …, "prev" => …, "next" => …, "last" => …}
class Page
  SIZE = 20
  MAXIMUM_SIZE = 100
  LARGEST_NUMBER = 1_000_000_000 # with a larger number, the offset overflows the integers of the database

  # Raised for an invalid page. The message is for the client.
  class Invalid < StandardError
    attr_reader :parameter

    def initialize(parameter, detail)
      @parameter = parameter
      super(detail)
    end
  end

  attr_reader :number, :size

  # @param asked [Hash{String => String}, nil] the request's `page` parameter
  # @raise [Invalid]
  def initialize(asked)
    asked = {} if asked.nil?
    raise Invalid.new("page", "page takes page[number] and page[size].") unless asked.is_a?(Hash) && (asked.keys - %w[number size]).empty?

    @number = whole(asked, "number", 1, LARGEST_NUMBER)
    @size = whole(asked, "size", SIZE, MAXIMUM_SIZE)
    freeze
  end

  # @yieldparam number [Integer] the number of a page
  # @yieldreturn [String] the URL of the page
  # @return [Hash{String => String}] JSON:API's pagination links of existing pages
  def links(record_count)
    last = [(record_count + size - 1) / size, 1].max
    numbers = { "first" => 1, "prev" => (number - 1 if number > 1), "next" => (number + 1 if number < last), "last" => last }
    numbers.compact.transform_values { |other| yield other }
  end

  private

  def whole(asked, name, default, maximum)
    text = asked.fetch(name) { return default }
    value = text.to_i if text.is_a?(String) && text.match?(/\A\d+\z/)
    return value if value&.between?(1, maximum)

    raise Invalid.new("page[#{name}]", "page[#{name}] must be a whole number from 1 to #{maximum}.")
  end
end
