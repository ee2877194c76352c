# frozen_string_literal: true

# Computes the version of the JSON of some posts with one query: the number of posts, comments and authors,
# and
# the latest edit of each.
#
#   PostsVersion.of(current_user.posts.published)               # => "100-2024-03-01 12:00:00-604-…"
#   PostsVersion.without_comments(current_user.posts.published) # for JSON without comments
#
# Writes that do not change `updated_at` (`update_columns`, SQL) change the version only if they change a
# count.
class PostsVersion
  POSTS = ["COUNT(DISTINCT posts.id)", "MAX(posts.updated_at)", "COUNT(DISTINCT users.id)", "MAX(users.updated_at)"].freeze
  COMMENTS = ["COUNT(comments.id)", "MAX(comments.updated_at)"].freeze

  def self.of(posts)
    pick(members(posts).left_joins(:comments), POSTS + COMMENTS)
  end

  def self.without_comments(posts)
    pick(members(posts), POSTS)
  end

  def self.members(posts)
    Post.where(id: posts.select(:id)).joins(:author)
  end

  # As text, because a Time in a cache key loses the fraction of its seconds.
  def self.pick(relation, expressions)
    relation.pick(*expressions.map { |expression| Arel.sql("CAST(#{expression} AS text)") }).join("-")
  end

  private_class_method :members, :pick
end
