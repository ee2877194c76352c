# frozen_string_literal: true

ActiveRecord::Schema[7.2].define do
  create_table :users do |t|
    t.string :name, null: false
    t.timestamps
  end

  create_table :access_tokens do |t|
    t.references :user, null: false
    t.string :digest, null: false, index: { unique: true }
    t.timestamps
  end

  create_table :posts do |t|
    t.references :author, null: false
    t.string :title, null: false
    t.text :body, null: false
    t.datetime :published_at, index: true
    t.timestamps
  end

  create_table :comments do |t|
    t.references :post, null: false
    t.references :user, null: false
    t.text :body, null: false
    t.timestamps
  end

  create_table :readings do |t|
    t.references :user, null: false, index: false
    t.references :post, null: false
    t.timestamps
    t.index %i[user_id post_id], unique: true
  end
end
