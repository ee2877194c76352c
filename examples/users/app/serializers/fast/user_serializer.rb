# frozen_string_literal: true

module Fast
  class UserSerializer
    include JSONAPI::Serializer

    set_type :users
    attributes :email, :first_name, :last_name
    attribute(:last_login_at) { |user| user.last_login_token&.last_used_at }
    attribute(:employee_id) { |user| user.employee&.id }

    has_many :roles, serializer: RoleSerializer, record_type: :roles
    has_many :groups, serializer: GroupSerializer, record_type: :groups
  end
end
