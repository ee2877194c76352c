# frozen_string_literal: true

# Only the attributes of a user.
class AccountResource < Castellan::Resource
  model User
  type "users"
  attributes :email, :first_name, :last_name
end
