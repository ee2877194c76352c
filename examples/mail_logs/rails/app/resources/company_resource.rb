# frozen_string_literal: true

class CompanyResource < ApplicationResource
  immutable
  attributes :name, :icon
end
