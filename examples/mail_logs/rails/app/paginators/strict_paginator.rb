# frozen_string_literal: true

# Paginates like jsonapi-resources, but accepts only digits: there `3abc` is 3, and two requests are a 500,
# `page[]=3` and a number whose offset overflows the integers of the database. Here both are a 400.
#
#   class MailLogResource < JSONAPI::Resource
#     paginator :strict
#   end
class StrictPaginator < PagedPaginator
  LARGEST = 1_000_000_000

  private

  def parse_pagination_params(params)
    raise JSONAPI::Exceptions::InvalidPageObject unless params.nil? || params.is_a?(ActionController::Parameters)

    super
    params&.each { |name, value| raise JSONAPI::Exceptions::InvalidPageValue.new(name, value) unless /\A\d+\z/.match?(value.to_s) }
  end

  def verify_pagination_params
    super
    raise JSONAPI::Exceptions::InvalidPageValue.new(:number, number) if number > LARGEST
  end
end
