# frozen_string_literal: true

# The same document, declared: what is read and how follows from it, and no instance of a model is made.
class UserResource < Castellan::Resource
  model User
  attributes :email, :first_name, :last_name
  attribute :last_login_at, from: "last_login.last_used_at"
  attribute :employee_id, from: "employee.id"
  has_many :roles, :groups
end
