# frozen_string_literal: true

class CategoryResource < ApplicationResource
  immutable
  attribute :name
end
