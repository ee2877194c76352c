# frozen_string_literal: true

class Group < ApplicationRecord
  has_many :group_assignments
  has_many :users, through: :group_assignments

  after_update_commit { users.touch_all } # a cached user contains its groups
end
