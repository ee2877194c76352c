# frozen_string_literal: true

class Post < ApplicationRecord
  FRONT_PAGE = 100

  belongs_to :author, class_name: "User"
  has_many :comments, -> { order(:id) }, dependent: :delete_all
  has_many :readings, dependent: :delete_all

  scope :listed, -> { where.not(published_at: nil).order(published_at: :desc, id: :desc) }
  scope :published, -> { listed.preload(:author, :comments) }
  scope :front_page, -> { published.limit(FRONT_PAGE) }

  def self.latest
    reorder(:updated_at).last
  end
end
