# frozen_string_literal: true

class EmployeeSerializer < ActiveModel::Serializer
  attributes :id, :number, :department
end
