# frozen_string_literal: true

# The resources of the library; evaluated in the module of its models.
class AuthorResource < Castellan::Resource
  model Author
  type "authors"
  attributes :name
  attribute :mentor_name, from: "mentor.name"
  has_many :articles
  belongs_to :mentor, resource: "AuthorResource"
end

class CommentResource < Castellan::Resource
  model Comment
  type "comments"
  attributes :body
end

class TagResource < Castellan::Resource
  model Tag
  type "tags"
  attributes :name
end

class StampResource < Castellan::Resource
  model Stamp
  type "stamps"
  attributes :label
end

class ArticleResource < Castellan::Resource
  model Article
  type "articles"
  attributes :title, :position
  attribute :author_name, from: { author: :name }
  attribute(:headline, columns: %i[title position], pure: true) { |row| "#{row.position}. #{row.title}" }
  belongs_to :author
  has_many :comments, :tags
  representation :summary, only: %i[title author]
  filter(:title) { |articles, titles| articles.where(title: titles) }
  filter(:broken) { |_articles, _values| nil }
  sort :title, :position, default: "position"
  page size: 3, max_size: 5, count: true
end

class KeptArticleResource < ArticleResource
  cache :exact
end

class KeptAuthorResource < AuthorResource
  cache :exact
end

class PersonalArticleResource < ArticleResource
  cache :exact
  per_viewer(:read) { |ids, viewer| viewer.call(ids) }
end

class VersionedArticleResource < ArticleResource
  cache :exact
  per_viewer(:read, version: :version.to_proc) { |ids, viewer| viewer.call(ids) }
end

# Has no pagination.
class LongArticleResource < Castellan::Resource
  model Article
  type "articles"
  attributes :title, :position
  attribute :author_name, from: { author: :name }
  belongs_to :author
  has_many :comments, :tags
  filter(:title) { |articles, titles| articles.where(title: titles) }
  sort :title, :position
end

CALLS = [] # rubocop:disable Style/MutableConstant

class WatchedAuthorResource < Castellan::Resource
  model Author
  type "authors"
  attributes :name
  per_viewer(:known) { |ids, viewer| CALLS.push([:authors, ids.size]) && ids.select { |id| id < viewer } }
end

class WatchedArticleResource < Castellan::Resource
  model Article
  type "articles"
  attributes :title
  per_viewer(:read) { |ids, _viewer| CALLS.push([:articles, ids.size]) && ids.to_h { |id| [id, "r\u2028#{id}"] } }
  belongs_to :author, resource: "WatchedAuthorResource"
end
