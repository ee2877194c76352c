# frozen_string_literal: true

# The resources of the journal; evaluated in the module of its models. A viewer is the number of a team; 0 sees everything.
class WriterResource < Castellan::Resource
  model Writer
  type "writers"
  attributes :name
  has_many :posts
  scope { |writers, team| team.to_i.zero? ? writers : writers.where(team: team) }
  writable :name, :posts
end

class TagResource < Castellan::Resource
  model Tag
  type "tags"
  attributes :name
  writable :name, :id
  deletable
end

class CommentResource < Castellan::Resource
  model Comment
  type "comments"
  attributes :body
  belongs_to :post
  writable :body, :post
  deletable { |team, comment| team.zero? || comment.body != "No" }
end

class PostResource < Castellan::Resource
  model Post
  type "posts"
  attributes :title, :slug, :body, :rating, :price, :pinned, :published_on, :published_at
  attribute :writer_name, from: "writer.name"
  belongs_to :writer
  has_many :tags, :comments
  scope { |posts, team| team.to_i.zero? ? posts : posts.where(writer_id: Writer.where(team: team).select(:id)) }
  writable :title, :body, :rating, :price, :pinned, :published_on, :published_at, :writer, :tags, :comments
  writable(:slug, on: :create) { |team| team != 2 }
  deletable
  authorize(:update) { |_team, post, _attributes| post.title != "Locked" }
  sort :title
  page size: 10, max_size: 50, count: true
end

class OverridingPostResource < PostResource
  def create(attributes, team)
    super({ body: "Written by team #{team}", **attributes }, team)
  end

  def update(record, attributes, team)
    raise "broken" if attributes[:title] == "Broken"

    super
  end
end

class KeptPostResource < PostResource
  cache :exact
end

class CarefulPostResource < PostResource
  require_if_match
end
