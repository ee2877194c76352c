# frozen_string_literal: true

class User < ApplicationRecord
  has_many :assignments
  has_many :roles, through: :assignments
  has_many :direct_roles, -> { where(assignments: { direct: true }) }, through: :assignments, source: :role

  has_many :group_assignments
  has_many :groups, through: :group_assignments

  has_one :employee
  has_many :authentication_tokens

  # As published: without an order, eager loading reads all tokens and takes the first row, the oldest.
  has_one :last_login_token_told, -> { where(on_behalf: false) }, class_name: "AuthenticationToken"

  # Corrected: the newest token that was not used on behalf of the user; one row per user.
  has_one :last_login_token, -> { newest_own.order(id: :desc) }, class_name: "AuthenticationToken"

  # Reads only the newest token of one user. Eager loading would read all tokens, but the resource reads one
  # token
  # per user (castellan_steps/user_resource.rb).
  has_one :last_login, -> { where(on_behalf: false).order(id: :desc) }, class_name: "AuthenticationToken"

  # Users with at least one of the roles. The subquery adds no JOIN, so an eager load reads all roles of a
  # user.
  scope :holding, ->(titles) { where(id: Assignment.joins(:role).where(role: { title: titles }).select(:user_id)).order(:id) }
end
