# frozen_string_literal: true

# The attributes of a user and nothing else.
class AccountResource < Castellan::Resource
  model User
  type "users"
  attributes :email, :first_name, :last_name
end
