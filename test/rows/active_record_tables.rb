# frozen_string_literal: true

# The tables of the rows tests; evaluated on a connection of ActiveRecord.
create_table(:users) do |t|
  t.string :email
  t.string :first_name
  t.string :last_name
  t.integer :manager_id
  t.string :code
  t.integer :status, default: 0
  t.datetime :created_at
end
create_table(:employees) do |t|
  t.references :user
  t.string :number
  t.references :desk
end
create_table(:desks) { |t| t.string :room }
create_table(:tokens) do |t|
  t.references :user
  t.boolean :on_behalf
  t.datetime :last_used_at
end
create_table(:roles) do |t|
  t.string :title
  t.boolean :hidden, default: false
end
create_table(:assignments) do |t|
  t.references :user
  t.references :role, foreign_key: true # on PostgreSQL, links need the join table only
  t.integer :rank
end
create_table(:groups) { |t| t.string :name }
create_join_table(:groups, :users)
create_table(:badges) do |t|
  t.string :user_code
  t.string :label
end
create_table(:posts) do |t|
  t.references :author
  t.string :title
  t.datetime :published_at
end
create_table(:comments) do |t|
  t.references :post
  t.references :author
  t.string :body
end
create_table(:notes) do |t|
  t.references :subject, polymorphic: true
  t.string :body
end
create_table(:vehicles) do |t|
  t.string :type
  t.references :user
  t.integer :wheels
  t.datetime :built_at
end
