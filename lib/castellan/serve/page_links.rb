# frozen_string_literal: true

require "rack/utils"

module Castellan
  module Serve
    # The pagination links of a page (JSON:API 1.1, "Pagination"): relative references that keep the rest of the query.
    #
    #   PageLinks.new("/mail-logs", { "include" => "company" }, page: [2, 20]).to_h(total: 50)
    #   # => { "first" => "/mail-logs?include=company&page%5Bnumber%5D=1&page%5Bsize%5D=20", "prev" => …, "next" => …, "last" => … }
    #
    # Without a total there is no `last`, and `next` follows every full page, so it may lead to an empty page.
    class PageLinks
      # @return [String] the beginning of all links: the path and the rest of the query
      attr_reader :base

      # @param query [Hash] the parameters
      # @param page [Array(Integer, Integer)] number and size
      def initialize(path, query, page:)
        @number, @size = page
        rest = query.except("page")
        @base = rest.empty? ? "#{path}?" : "#{path}?#{Rack::Utils.build_nested_query(rest)}&"
      end

      # @param total [Integer, nil] how many there are in all, when that is counted
      # @param full [Boolean] whether there are as many on the page as fit
      # @return [Hash{String => String, nil}]
      def to_h(total:, full: false)
        return { "first" => to(1), "prev" => before(@number), "next" => (to(@number + 1) if full) } unless total

        last = [(total + @size - 1) / @size, 1].max
        { "first" => to(1), "prev" => before([@number, last + 1].min), "next" => (to(@number + 1) if @number < last), "last" => to(last) }
      end

      private

      def before(number)
        to(number - 1) if number > 1
      end

      def to(number)
        "#{@base}page%5Bnumber%5D=#{number}&page%5Bsize%5D=#{@size}"
      end
    end
  end
end
