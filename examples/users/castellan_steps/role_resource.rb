# frozen_string_literal: true

class RoleResource < Castellan::Resource
  model Role
  attributes :title
end
