# frozen_string_literal: true

# Posts with authors, comments and readings; a page has 60 posts and 52 kB of JSON.

class Author < ActiveRecord::Base; end
class Comment < ActiveRecord::Base; end
class Reading < ActiveRecord::Base; end

class Post < ActiveRecord::Base
  belongs_to :author
  has_many :comments, -> { order(:id) }
  scope :page, -> { order(:id).limit(60) }

  # @return [String] SQL for the tables and rows
  def self.setup
    <<~SQL
      CREATE TABLE authors (id serial PRIMARY KEY, name text, updated_at timestamptz NOT NULL DEFAULT now());
      CREATE TABLE posts (id serial PRIMARY KEY, author_id int, title text, body text, updated_at timestamptz NOT NULL DEFAULT now());
      CREATE TABLE comments (id serial PRIMARY KEY, post_id int, body text, updated_at timestamptz NOT NULL DEFAULT now());
      CREATE TABLE readings (user_id int, post_id int, PRIMARY KEY (user_id, post_id));
      CREATE INDEX ON comments (post_id);
      INSERT INTO authors (name) SELECT 'Author ' || i FROM generate_series(1, 20) i;
      INSERT INTO posts (author_id, title, body)
        SELECT i % 20 + 1, 'Title ' || i, (SELECT string_agg(md5((i * j)::text), ' ') FROM generate_series(1, 14) j) FROM generate_series(1, 2000) i;
      INSERT INTO comments (post_id, body) SELECT i % 2000 + 1, 'Comment ' || md5(i::text) FROM generate_series(1, 8000) i;
      INSERT INTO readings SELECT u, p FROM generate_series(1, 1000) u, generate_series(1, 60) p WHERE (u + p) % 3 = 0;
      ANALYZE;
    SQL
  end
end

# Each request has the next of 1,000 viewers.
module Viewers
  @number = 0
  def self.next = (@number = (@number + 1) % 1_000) + 1
end

class AuthorResource < Castellan::Resource
  model Author
  attributes :name
end

class CommentResource < Castellan::Resource
  model Comment
  attributes :body
end

class UnkeptPostResource < Castellan::Resource
  model Post
  type "posts"
  format :nested
  attributes :title, :body
  belongs_to :author, resource: AuthorResource
  has_many :comments, resource: CommentResource
  sort :id, default: "id"
  page size: 60, max_size: 60
end

class ExactPostResource < UnkeptPostResource
  cache :exact
end

class NotifiedPostResource < UnkeptPostResource
  cache :notified
end

class PersonalPostResource < UnkeptPostResource
  cache :notified
  per_viewer(:read) { |ids, viewer| Reading.where(user_id: viewer, post_id: ids).pluck(:post_id) }
end

class VersionedPostResource < UnkeptPostResource
  cache :notified
  per_viewer(:read, version: :readings) do |ids, viewer|
    Reading.where(user_id: viewer, post_id: ids).pluck(:post_id)
  end
end
