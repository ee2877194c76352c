# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "i18n"
require "active_support/current_attributes"
require "rack/mock_request"
require "document/library"

# A kept document must not hold what a block read of its surroundings: on both ORMs, whichever member the block belongs to.
module CustomCodeContract
  class Current < ActiveSupport::CurrentAttributes
    attribute :user
  end

  # How a block reads its surroundings, and how a test sets them.
  SURROUNDINGS = {
    current_attributes: [-> { Current.user }, ->(value) { Current.user = value }],
    locale: [-> { I18n.locale.to_s }, ->(value) { I18n.locale = value == "one" ? :de : :en }],
    zone: [-> { Time.zone.name }, ->(value) { Time.zone = value == "one" ? "Tokyo" : "UTC" }],
    thread: [-> { Thread.current[:castellan_test] }, ->(value) { Thread.current[:castellan_test] = value }],
    global: [-> { $castellan_test }, ->(value) { $castellan_test = value }], # rubocop:disable Style/GlobalVars
    clock: [-> { Time.now.year.to_s }, nil]
  }.freeze

  # How each member of a resource runs a block that returns a String.
  MEMBERS = {
    attribute: ->(read, **options) { attribute(:seen, columns: [:title], **options) { |row| row.title + read.call } },
    record: ->(read, **options) { attribute(:seen, **options) { |record| record.title + read.call } },
    link: ->(read, **options) { link(:self, columns: [:title], **options) { |_row| "/#{read.call}" } },
    meta: ->(read, **options) { meta(columns: [:title], **options) { |_row| { seen: read.call } } },
    condition: ->(read, **options) {
      attribute(:body, if: ->(_row) {
        %w[one de Tokyo 2024].include?(read.call)
      }, if_columns: [:title], **options)
    },
    relationship_link: lambda { |read, **options|
      belongs_to(:author, resource: "AuthorResource", columns: [:title], links: { self: ->(_row) { "/#{read.call}" } }, **options)
    },
    relationship_meta: lambda { |read, **options|
      belongs_to(:author, resource: "AuthorResource", columns: [:title], meta: ->(_row) { { seen: read.call } }, **options)
    }
  }.freeze

  def setup
    @locale = I18n.locale
    @available = I18n.available_locales
    I18n.available_locales = %i[en de]
    library.fill
    @versions = library.versions
    @versions.install(Library::TABLES)
    @keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
  end

  def teardown
    @versions&.uninstall(Library::TABLES)
    I18n.available_locales = @available
    I18n.locale = @locale
    Time.zone = nil
    Current.reset
    Thread.current[:castellan_test] = nil
    $castellan_test = nil # rubocop:disable Style/GlobalVars
  end

  MEMBERS.each do |member, declare|
    define_method("test_bytes_and_etag_of_a_#{member}_that_reads_its_surroundings_are_nobody_elses") do
      SURROUNDINGS.each { |name, (read, _)| assert_nobody_elses(name, resource { instance_exec(read, &declare) }) }
    end
  end

  def test_a_block_of_an_included_resource_counts_as_well
    inner = resource(models::AuthorResource) { attribute(:seen, columns: [:name]) { |row| "#{row.name} #{Current.user}" } }
    outer = resource { belongs_to :author, resource: inner }
    assert_nobody_elses(:current_attributes, outer, include: "author")
    explained = outer.document(keeper: @keeper, include: "author").explain
    assert_includes explained, "#{inner.name} attribute :seen"
    assert_includes outer.document(keeper: @keeper).explain, "kept: the document, while"
  end

  def test_a_reader_that_the_model_overrides_counts_as_well
    model = model_with_reader
    seen = resource { model(model) }
    assert_nobody_elses(:current_attributes, seen)
    assert_includes seen.document(keeper: @keeper).explain, "attribute :title: #{model} reads title by a method"
  end

  def test_pure_keeps_a_document_that_runs_a_reader_of_the_model
    model = model_with_reader
    by_attribute = resource { model(model) && attribute(:title, pure: true) }
    by_resource = resource { model(model) && pure }
    [by_attribute, by_resource].each do |pure|
      assert_kept(pure)
      before = pure.document(keeper: @keeper).etag
      library.run("UPDATE articles SET title = 'Other'")
      refute_equal before, pure.document(keeper: @keeper).etag
      assert_equal pure.render(keeper: nil), pure.render(keeper: @keeper)
    end
  end

  def test_pure_keeps_a_document_that_runs_a_block
    MEMBERS.each_value do |declare|
      assert_kept(resource { instance_exec(-> { "x" }, pure: true, &declare) })
      assert_kept(resource { pure && instance_exec(-> { "x" }, &declare) })
    end
  end

  def test_pure_of_a_superclass_holds_below_it_until_it_is_taken_back
    above = resource { pure }
    assert_kept(resource(above) { attribute(:seen, columns: [:title], &:title) })
    refute_kept(resource(above) { [pure(false), attribute(:seen, columns: [:title], &:title)] })
  end

  def test_a_member_that_is_not_pure_is_not_kept_in_a_pure_resource
    MEMBERS.each_value do |declare|
      refute_kept(resource { pure && instance_exec(-> { "x" }, pure: false, &declare) })
    end
  end

  def test_a_reader_in_the_text_of_a_link_counts_as_well
    model = model_with_reader
    declare = ->(**options) { model(model) && attribute(:title, as_stored: true) && link(:self, "/articles/{title}", **options) }
    seen = resource { instance_exec(&declare) }
    assert_nobody_elses(:current_attributes, seen)
    assert_includes seen.document(keeper: @keeper).explain, "link :self: #{model} reads title by a method"
    assert_kept(resource { instance_exec(pure: true, &declare) })
  end

  def test_the_locale_and_the_zone_are_part_of_the_key_of_a_pure_block
    %i[locale zone].each do |name|
      read, = SURROUNDINGS.fetch(name)
      seen = resource { attribute(:seen, columns: [:title], pure: true) { |row| row.title + read.call } }
      assert_nobody_elses(name, seen)
      assert_kept(seen)
    end
  end

  def test_bytes_that_are_read_after_a_middleware_are_of_its_locale_and_zone
    seen = resource { attribute(:seen, columns: [:title], pure: true) { |row| "#{row.title} #{I18n.locale} #{Time.zone&.name}" } }
    inside = ->(&block) { I18n.with_locale(:de) { Time.use_zone("Tokyo", &block) } }
    expected = inside.call { seen.render(keeper: nil) }
    refute_equal expected, seen.render(keeper: nil)
    2.times do
      document = inside.call { seen.document(keeper: @keeper).tap(&:headers) }
      assert_equal expected, document.to_json
    end
    stream = inside.call { seen.document(keeper: nil) }.stream
    assert_predicate stream, :divided?
    assert_equal expected, stream.each.to_a.join
    assert_equal [:en, nil], [I18n.locale, Time.zone]
  end

  # Falcon reads a body in this way.
  def test_a_fiber_that_waits_in_a_stream_leaves_others_their_locale_and_zone
    seen = resource { attribute(:seen, columns: [:title], pure: true) { |row| "#{row.title} #{I18n.locale} #{Time.zone&.name}" } }
    body = I18n.with_locale(:de) { Time.use_zone("Tokyo") { seen.document(keeper: nil).stream } }
    fiber = -> { Fiber.new { body.each { |bytes| Fiber.yield(bytes, I18n.locale, Time.zone) } } }
    bytes, *around = Thread.new { fiber.call.resume.push(I18n.locale, Time.zone) }.value
    assert_includes bytes, " de Tokyo"
    assert_equal [:en, nil] * 2, around
  end

  def test_a_locale_makes_no_second_document_of_columns_alone
    plain = resource { nil }
    tags = %i[de en].map { |locale| I18n.with_locale(locale) { plain.document(keeper: @keeper).etag } }
    assert_equal 1, tags.uniq.size
  end

  def test_vary_on_declares_what_a_block_reads
    seen = resource do
      vary_on { |viewer| [viewer&.upcase, Current.user] }
      attribute(:seen, columns: [:title]) { |row, viewer| "#{row.title} #{viewer&.upcase} #{Current.user}" }
    end
    assert_nobody_elses(:current_attributes, seen)
    %w[ada alan].product([1, 2]).each do |viewer, user|
      Current.user = user
      2.times { assert_equal seen.render(viewer: viewer, keeper: nil), seen.render(viewer: viewer, keeper: @keeper) }
      refute_equal seen.document(viewer: "grace", keeper: @keeper).etag, seen.document(viewer: viewer, keeper: @keeper).etag
      assert_equal seen.document(viewer: viewer.upcase, keeper: @keeper).etag, seen.document(viewer: viewer, keeper: @keeper).etag
    end
    assert_kept(seen)
  end

  def test_values_of_vary_on_that_differ_are_different_keys
    values = [nil, "", "a", :a, "b", 1, 1.0, "1", 1r, true, "true", false, [], [[]], [nil], %w[a b], [["a"], "b"], ["a", ["b"]],
              [:a, "b"], ["a", :b], %w[symbol a], %w[string a], [nil, nil], BigDecimal(1), BigDecimal("1.1"),
              *%w[UTC +00:00 +09:00].map { |zone| Time.at(1, in: zone) }, *%w[Tokyo Seoul].map { |zone| Time.at(1).in_time_zone(zone) }]
    current = nil
    seen = resource { vary_on { current } && attribute(:seen, columns: [:title], &:title) }
    tags = values.map do |value|
      current = value
      seen.document(keeper: @keeper).etag
    end
    assert_equal values.size, tags.uniq.size
  end

  def test_a_value_of_vary_on_without_a_distinct_text_raises
    [Object.new, { role: 1 }, [[models::Article]]].each do |value|
      seen = resource { vary_on { value } && attribute(:seen, columns: [:title], &:title) }
      error = assert_raises(Castellan::ConfigurationError) { seen.document(keeper: @keeper).etag }
      assert_match(/vary_on of #{seen.name}.*must return strings, symbols, numbers.*custom_code_test\.rb:\d+/, error.message)
    end
  end

  def test_a_block_of_the_record_is_kept_only_if_pure_and_without_associations
    walking = resource { attribute(:seen, preloads: :comments, pure: true) { |record| record.comments.size.to_s } }
    refute_kept(walking)
    assert_includes walking.document(keeper: @keeper).explain, "seen: its block reads other records (preloads: comments)"
    varied = resource { vary_on { 1 } && attribute(:seen) { |record| record.title } }
    refute_kept(varied)
    assert_includes varied.document(keeper: @keeper).explain, "attribute :seen: its block gets the whole record"
  end

  def test_pure_does_not_keep_a_block_that_takes_the_viewer
    seen = resource { pure && attribute(:seen, columns: [:title]) { |row, viewer| "#{row.title} #{viewer}" } }
    refute_kept(seen)
    assert_match(/attribute :seen: its block takes the viewer .*vary_on/, seen.document(keeper: @keeper).explain)
  end

  def test_holes_of_the_viewer_need_no_declaration
    seen = resource { per_viewer(:known) { |ids, viewer| ids.select { |id| id == viewer } } }
    assert_kept(seen)
  end

  def test_values_of_a_viewer_are_of_one_locale_and_zone
    %i[locale zone].each do |name|
      read, = SURROUNDINGS.fetch(name)
      seen = resource { per_viewer(:seen, version: ->(_viewer) { 1 }) { |ids, _viewer| ids.to_h { |id| [id, read.call] } } }
      assert_nobody_elses(name, seen)
    end
  end

  def test_explain_names_each_member_that_prevents_keeping
    seen = resource do
      attribute(:first, columns: [:title], &:title)
      attribute(:second, columns: [:title], pure: true, &:title)
      attribute(:third, from: "author.name", if: ->(row) { row.title }, if_columns: [:title])
      link(:self, columns: [:title], &:title)
      link(:fixed, "/articles/{id}")
      meta(columns: [:title]) { |row| { size: row.title.size } }
    end
    explained = seen.document(keeper: @keeper).explain
    assert_includes explained, "kept: never, because:"
    ["attribute :first: its block may read more than its columns (#{__FILE__}:", "attribute :third, if:", "link :self",
     "meta"].each do |text|
      assert_includes explained, text
    end
    assert_match(/attribute :first.*: write pure: true there .* vary_on/, explained)
    refute_includes explained, ":second"
    refute_includes explained, ":fixed"
  end

  def test_a_304_is_for_the_viewer_who_got_the_bytes
    seen = resource { attribute(:seen, columns: [:title]) { |row| "#{row.title} #{Current.user}" } }
    Castellan.keeper = @keeper
    app = Castellan.app do
      authenticate { |env| Current.user = env["HTTP_AUTHORIZATION"] }
      resource seen
    end
    ada, alan = %w[ada alan].map { |user| Rack::MockRequest.new(app).get("/articles", "HTTP_AUTHORIZATION" => user) }
    refute_equal ada.body, alan.body
    answers = %w[ada alan].map do |user|
      Rack::MockRequest.new(app).get("/articles", "HTTP_AUTHORIZATION" => user, "HTTP_IF_NONE_MATCH" => ada["etag"])
    end
    assert_equal [304, 200], answers.map(&:status)
    assert_equal alan.body, answers.last.body
  ensure
    Castellan.keeper = nil
  end

  private

  def assert_nobody_elses(name, resource, **asked)
    seen = %w[one two].map do |value|
      surrounded(name, value) do
        fresh = resource.document(keeper: nil, **asked)
        2.times { assert_equal fresh.to_json, resource.render(keeper: @keeper, **asked) }
        [fresh.to_json, resource.document(keeper: @keeper, **asked).etag]
      end
    end
    assert_equal 2, seen.map(&:first).uniq.size, "the test's block must see the difference"
    assert_equal 2, seen.map(&:last).uniq.size, "each has a validator of its own"
  end

  def surrounded(name, value, &block)
    return Time.stub(:now, Time.utc(value == "one" ? 2024 : 2025), &block) if name == :clock

    SURROUNDINGS.fetch(name).last.call(value)
    block.call
  end

  def assert_kept(resource)
    assert_includes resource.document(keeper: @keeper).explain, "kept: the document, while"
    assert_predicate resource.document(keeper: @keeper).rendering, :kept?
  end

  def refute_kept(resource)
    refute_predicate resource.document(keeper: @keeper).rendering, :kept?
    refute_includes resource.document(keeper: @keeper).explain, "kept: the document, while"
  end

  def models = library.models

  # With a name, because nothing of a nameless class is kept.
  def resource(parent = nil, &block)
    @@count = (@@count ||= 0) + 1 # rubocop:disable Style/ClassVars
    models.const_set(:"Custom#{@@count}Resource", Class.new(parent || base, &block))
  end

  def base
    models.const_get(:KeptPlainResource, false)
  rescue NameError
    article = models::Article
    models.const_set(:KeptPlainResource, Class.new(Castellan::Resource) {
      model article
      type "articles"
      attributes :title
      cache :exact
    })
  end

  def model_with_reader
    return models::LoudArticle if models.const_defined?(:LoudArticle, false)

    models.const_set(:LoudArticle, Class.new(models::Article) { def title = "#{super} #{Current.user}!" })
  end
end

class CustomCodeOnActiveRecordTest < Minitest::Test
  include CustomCodeContract

  # A type whose Ruby code reads more than its column.
  class LoudType < ActiveRecord::Type::String
    def deserialize(value) = "#{super} #{CustomCodeContract::Current.user}"
  end

  def library = Library.active_record(:sqlite)

  def test_times_are_distinguished_by_zone
    library.run("CREATE TABLE IF NOT EXISTS moments (id integer PRIMARY KEY, begins_at datetime(6))")
    library.run("INSERT OR REPLACE INTO moments VALUES (1, '2024-05-01 12:00:00')")
    @versions.install(%w[moments])
    Time.zone = "UTC"
    moment = models.const_set(:Moment, Class.new(models::Base) {
      self.table_name = "moments"
      attribute :begins_at, ActiveRecord::AttributeMethods::TimeZoneConversion::TimeZoneConverter.new(ActiveRecord::Type::DateTime.new)
    })
    moments = models.const_set(:MomentResource, Class.new(Castellan::Resource) {
      model moment
      type "moments"
      attributes :begins_at
      cache :exact
    })
    %w[Tokyo UTC].each do |zone|
      Time.zone = zone
      2.times { assert_equal moments.render(keeper: nil), moments.render(keeper: @keeper) }
      assert_kept(moments)
    end
  end

  def test_a_type_of_the_application_counts_as_well
    model = models.const_set(:TypedArticle, Class.new(models::Article) { attribute :title, LoudType.new })
    seen = resource { model(model) }
    assert_nobody_elses(:current_attributes, seen)
    assert_includes seen.document(keeper: @keeper).explain, "#{LoudType.name}, the type of title, may read more than its columns"
    assert_kept(resource { model(model) && pure })
  end

  def test_a_subclass_that_is_loaded_later_counts_as_well
    library.run("CREATE TABLE IF NOT EXISTS posters (id integer PRIMARY KEY, type varchar(80), title varchar(80))")
    library.run("INSERT OR REPLACE INTO posters VALUES (1, NULL, 'One')")
    @versions.install(%w[posters])
    poster = models.const_set(:Poster, Class.new(models::Base))
    posters = resource { [type("posters"), model(poster)] }
    assert_kept(posters)
    models.const_set(:LoudPoster, Class.new(poster) { def title = "#{super} #{Current.user}" })
    refute_kept(posters)
  end

  def test_explain_prints_why_the_tables_of_a_polymorphic_relationship_are_unknown
    library.run("CREATE TABLE IF NOT EXISTS likes (id integer PRIMARY KEY, subject_type varchar(80), subject_id integer)")
    visible = models.const_set(:VisibleArticle, Class.new(models::Base) {
      self.table_name = "articles"
      default_scope { where("position >= 0") }
    })
    like = models.const_set(:Like, Class.new(models::Base) { belongs_to :subject, polymorphic: true, optional: true })
    articles = resource { model(visible) }
    likes = models.const_set(:LikeResource, Class.new(Castellan::Resource) {
      model like
      type "likes"
      belongs_to :subject, resource: [articles]
      cache :exact
    })
    explained = likes.document(keeper: @keeper).explain
    assert_match(/kept: never, because:\n  likes, subject: it has several types, and a default scope .* #{visible}/, explained)
  end
end

class CustomCodeOnSequelTest < Minitest::Test
  include CustomCodeContract

  def library = Library.sequel(:sqlite)
end
