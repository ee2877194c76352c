# frozen_string_literal: true

ActiveRecord::Schema[7.2].define do
  create_table :users do |t|
    t.string :email, null: false, index: { unique: true }
    t.string :first_name, null: false
    t.string :last_name, null: false
    t.timestamps
  end

  create_table :roles do |t|
    t.string :title, null: false, index: { unique: true }
    t.timestamps
  end

  create_table :assignments do |t|
    t.references :user, null: false
    t.references :role, null: false
    t.boolean :direct, null: false, default: true # false: assigned through a group
    t.timestamps
  end

  create_table :groups do |t|
    t.string :name, null: false
    t.timestamps
  end

  create_table :group_assignments do |t|
    t.references :user, null: false
    t.references :group, null: false
    t.date :since
    t.timestamps
  end

  create_table :employees do |t|
    t.references :user, null: false, index: { unique: true }
    t.string :number, null: false
    t.string :department, null: false
    t.timestamps
  end

  create_table :authentication_tokens do |t|
    t.references :user, null: false, index: false
    t.boolean :on_behalf, null: false, default: false # a supporter was logged in as this user
    t.datetime :last_used_at, null: false
    t.timestamps
    t.index %i[user_id on_behalf id]
  end
end
