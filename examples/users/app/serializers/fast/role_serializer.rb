# frozen_string_literal: true

module Fast
  class RoleSerializer
    include JSONAPI::Serializer

    set_type :roles
    attributes :title
  end
end
