# frozen_string_literal: true

class Category < ApplicationRecord
  has_many :mail_logs
end
