# frozen_string_literal: true

class GroupResource < Castellan::Resource
  model Group
  attributes :name
end
