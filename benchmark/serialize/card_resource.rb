# frozen_string_literal: true

class Card < ActiveRecord::Base; end

# Ten attributes, of records that are loaded already.
class CardResource < Castellan::Resource
  model Card
  type "cards"
  attributes :name, :email, :city, :phone, :note, :age, :score, :active, :seen_at, :joined_at
end
