# frozen_string_literal: true

module Fast
  class GroupSerializer
    include JSONAPI::Serializer

    set_type :groups
    attributes :name
  end
end
