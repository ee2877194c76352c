# frozen_string_literal: true

module Users
  # Corrected: joins the cached texts into one JSON:API document, and loads only the users that are not
  # cached.
  # The version of a user is `updated_at`, which related models touch. Writes without models (SQL,
  # `insert_all`)
  # become visible after 12 hours.
  class RecordCacheController < ApplicationController
    ENTRY = { namespace: "users/record_cache", expires_in: 12.hours }.freeze

    def index
      users = User.holding(titles).to_a
      cached = Rails.cache.read_multi(*users, **ENTRY)
      made = documents(users - cached.keys)
      Rails.cache.write_multi(made, **ENTRY)
      render json: joined(cached.merge(made).values_at(*users))
    end

    private

    def documents(users)
      ActiveRecord::Associations::Preloader.new(records: users, associations: %i[roles groups employee last_login_token]).call
      users.index_with do |user|
        document = Fast::UserSerializer.new(user, include: %i[roles groups]).serializable_hash
        { data: document[:data].to_json, included: document[:included].map(&:to_json) }
      end
    end

    def joined(documents)
      included = documents.flat_map { |document| document[:included] }.uniq
      %({"data":[#{documents.pluck(:data).join(',')}],"included":[#{included.join(',')}]})
    end
  end
end
