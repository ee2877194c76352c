# frozen_string_literal: true

class AuthorResource < Castellan::Resource
  format :nested
  model User
  attributes :name, :created_at, :updated_at
end
