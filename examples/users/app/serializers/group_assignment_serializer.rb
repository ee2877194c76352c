# frozen_string_literal: true

class GroupAssignmentSerializer < ActiveModel::Serializer
  attributes :id, :since
end
