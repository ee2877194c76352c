# frozen_string_literal: true

class User < ApplicationRecord
  has_many :assignments
  has_many :roles, through: :assignments
  has_many :direct_roles, -> { where(assignments: { direct: true }) }, through: :assignments, source: :role

  has_many :group_assignments
  has_many :groups, through: :group_assignments

  has_one :employee
  has_many :authentication_tokens

  # As told: without an order, eager loading takes the first row the database sends, which is the oldest token, and
  # reads every token of every user to get it.
  has_one :last_login_token_told, -> { where(on_behalf: false) }, class_name: "AuthenticationToken"

  # Corrected: the newest token that was not used on behalf of somebody, chosen by the database, one row a user.
  has_one :last_login_token, -> { newest_own.order(id: :desc) }, class_name: "AuthenticationToken"

  # What a user answers alone: the newest, and no other is read. Eager loading it would read all tokens; rows ask for it as a
  # user does (castellan_steps/user_resource.rb).
  has_one :last_login, -> { where(on_behalf: false).order(id: :desc) }, class_name: "AuthenticationToken"

  # Users who hold at least one of the roles, chosen in a subquery: it joins nothing, so an eager load stays whole.
  scope :holding, ->(titles) { where(id: Assignment.joins(:role).where(role: { title: titles }).select(:user_id)).order(:id) }
end
