# frozen_string_literal: true

# Inserts the same rows each time, in bulk: five authors with a hundred published posts and fifteen drafts
# each, and four to eight comments per post. Ids ascend with those of the parents. MULTIPLIER=n multiplies the
# posts of each author. User 1 has the bearer token `viewer-1`, and so on.
class Seeds
  AUTHORS = %w[Ada Barbara Grace Radia Sophie].freeze
  READERS = %w[Alan Bjarne Carol Donald Edsger Frances Hedy Ines Jean Ken Lois Margaret Niklaus Ole Tony].freeze
  PUBLISHED = 100
  DRAFTS = 15
  COMMENTS = 4..8
  WORDS = %w[castle wall moat tower gate bridge keeper stone slate oak iron bell lantern cellar well garden stable kitchen chapel
             hall stair window door lock key torch banner shield ladder rope barrel bread honey apple salt winter morning evening
             rain fog snow wind river valley hill forest road market harbour island].freeze
  NOW = Time.utc(2024, 3, 1, 12)
  BATCH = 2_000

  # Identifies these seeds in the database.
  def self.fingerprint
    "posts #{PUBLISHED * multiplier}"
  end

  def self.multiplier
    Integer(ENV.fetch("MULTIPLIER", "1"))
  end

  def initialize
    @random = Random.new(20_240_301)
    @rows = Hash.new { |rows, model| rows[model] = [] }
  end

  def call
    (AUTHORS + READERS).each { |name| add_user(name) }
    ((PUBLISHED + DRAFTS) * self.class.multiplier).times { |round| AUTHORS.each_index { |index| add_post(index + 1, round) } }
    @rows.each { |model, rows| rows.each_slice(BATCH) { |batch| model.insert_all!(batch) } }
  end

  private

  def add_user(name)
    at = NOW - rand(1_000_000)
    id = add(User, at, name: name)
    add AccessToken, at, user_id: id, digest: AccessToken.digest("viewer-#{id}")
  end

  # Authors take turns, and their drafts are spread among the published posts.
  def add_post(author_id, round)
    at = NOW - 400.days + (round * 5 + author_id) * 3_600 / self.class.multiplier + Rational(rand(1_000_000), 1_000_000)
    draft = round % (PUBLISHED + DRAFTS) % 8 == 7 || round % (PUBLISHED + DRAFTS) == 0
    post_id = add(Post, at, author_id: author_id, title: text(4).capitalize, body: text(19), published_at: (at unless draft))
    return if draft

    add_comments(post_id, at)
    add_readings(post_id, at)
  end

  def add_comments(post_id, at)
    rand(COMMENTS).times do
      at += rand(1..86_400)
      add Comment, at, post_id: post_id, user_id: rand(1..(AUTHORS.size + READERS.size)), body: text(7)
    end
  end

  def add_readings(post_id, at)
    (1..(AUTHORS.size + READERS.size)).each { |user_id| add Reading, at, user_id: user_id, post_id: post_id if rand(2).zero? }
  end

  def text(words)
    Array.new(words) { WORDS.sample(random: @random) }.join(" ")
  end

  def add(model, at, **attributes)
    rows = @rows[model]
    rows << { id: rows.size + 1, **attributes, created_at: at, updated_at: at }
    rows.size
  end

  def rand(limit)
    @random.rand(limit)
  end
end
