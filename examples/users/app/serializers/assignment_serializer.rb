# frozen_string_literal: true

class AssignmentSerializer < ActiveModel::Serializer
  attributes :id, :direct
end
