# frozen_string_literal: true

class MailLog < ApplicationRecord
  belongs_to :category
  belongs_to :company
end
