# frozen_string_literal: true

module Users
  # As published, and wrong: joins the cached texts with commas, which is not JSON.
  class RecordCacheToldController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups, :employee, :last_login_token)
      render json: users.map { |user| cached(user) }.join(",")
    end

    private

    def cached(user)
      Rails.cache.fetch(["users/record_cache_told", user], expires_in: 12.hours) do
        Fast::UserSerializer.new(user, include: %i[roles groups]).serializable_hash.to_json
      end
    end
  end
end
