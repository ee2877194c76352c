# frozen_string_literal: true

# All fields of a user. Written for `show`, and used for the index as well.
class UserSerializer < ActiveModel::Serializer
  attributes :id, :email, :first_name, :last_name, :last_login_at, :employee_id

  has_one :employee
  has_many :assignments
  has_many :direct_roles
  has_many :roles
  has_many :group_assignments
  has_many :groups

  def employee_id
    object.employee&.id
  end

  def last_login_at
    object.authentication_tokens.where(on_behalf: false).last&.last_used_at
  end
end
