# frozen_string_literal: true

class Role < ApplicationRecord
  has_many :assignments
  has_many :users, through: :assignments

  after_update_commit { users.touch_all } # a cached user contains its roles
end
