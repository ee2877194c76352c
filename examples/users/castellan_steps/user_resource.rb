# frozen_string_literal: true

# Declares the same document. Castellan derives the queries and instantiates no models.
class UserResource < Castellan::Resource
  model User
  attributes :email, :first_name, :last_name
  attribute :last_login_at, from: "last_login.last_used_at"
  attribute :employee_id, from: "employee.id"
  has_many :roles, :groups
end
