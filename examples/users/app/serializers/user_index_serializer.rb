# frozen_string_literal: true

# The fields that the list in the front end needs: attributes, roles and groups.
class UserIndexSerializer < ActiveModel::Serializer
  type "users"
  attributes :id, :email, :first_name, :last_name, :last_login_at, :employee_id

  has_many :roles
  has_many :groups

  def employee_id
    object.employee&.id
  end

  def last_login_at
    object.authentication_tokens.where(on_behalf: false).last&.last_used_at
  end
end
