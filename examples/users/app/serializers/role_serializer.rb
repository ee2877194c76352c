# frozen_string_literal: true

class RoleSerializer < ActiveModel::Serializer
  attributes :id, :title
end
