# frozen_string_literal: true

class Assignment < ApplicationRecord
  belongs_to :user, touch: true
  belongs_to :role
end
