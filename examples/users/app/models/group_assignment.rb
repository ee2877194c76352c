# frozen_string_literal: true

class GroupAssignment < ApplicationRecord
  belongs_to :user, touch: true
  belongs_to :group
end
