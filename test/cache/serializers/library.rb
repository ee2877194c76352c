# frozen_string_literal: true

# Posts with authors and comments on SQLite, and Castellan's cache, for the examples beside this file.

require "active_record"
require "castellan"

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Schema.verbose = false
Castellan::Versions::ActiveRecordSchema.extend_active_record
ActiveRecord::Schema.define do
  create_table(:authors) { |t| t.string :name }
  create_table(:posts) { |t| t.string(:title) && t.integer(:author_id) }
  create_table(:comments) { |t| t.string(:body) && t.integer(:post_id) }
  castellan_versions :authors, :posts, :comments
end

class Author < ActiveRecord::Base; end
class Comment < ActiveRecord::Base; end

class Post < ActiveRecord::Base
  belongs_to :author
  has_many :comments
end

ada = Author.create!(name: "Ada")
3.times { |number| Post.create!(title: "Post #{number}", author: ada).comments.create!(body: "Grüße") }
Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base))

# Prints the document, how many times it was computed in two requests, and again after a comment changed.
def show
  computed = 0
  answer = -> { yield(-> { computed += 1 }) }
  fresh = answer.call
  raise "another document from the cache" unless answer.call == fresh

  twice = computed
  Comment.first.update!(body: "changed")
  puts JSON.generate(document: JSON.parse(answer.call), computed: [twice, computed], changed: answer.call != fresh)
end
