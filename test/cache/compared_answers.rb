# frozen_string_literal: true

require "rack"
require "rack/mock_request"
require "zlib"
require "document/library"

# An application over the library whose viewers see their own articles, and comparisons of its answers with
# and without a cache.
module ComparedAnswers
  VIEWERS = %w[1 2 3].freeze
  SOAK = ENV.key?("CASTELLAN_SOAK")
  LARGE = SOAK || Castellan::TestHelpers.all?

  private

  def library = @setting&.library || Library.active_record(:postgres)

  def redis
    Castellan::Store::RedisStore.new(url: Castellan::TestServers.redis_url, timeout: 5, namespace: "faults-#{@rng.seed}-#{object_id}-")
  end

  def tiered = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, redis)

  def keeper(store, versions = @versions)
    lines = @lines = []
    Castellan::Keeper.new(store: store, versions: versions, log: ->(line) { lines << line })
  end

  # @return [Array<String>] what differed from the document that is written anew
  def wrong_answers(viewer, right = fresh(viewer))
    articles = library.models::Article
    bytes = Castellan.cache.fetch("titles", depends_on: articles, notified: @setting&.kind == :notified) { titles }
    # Without a version nothing is kept, and the block reads what the request reads.
    fetched = bytes == now { titles } || (Castellan.cache.version([articles.table_name]).nil? && bytes == titles)
    { "plain" => get(viewer) == right, "gzip" => get(viewer, "gzip") == right, "fetch" => fetched }
      .reject { |_, same| same }.keys
  end

  def titles = library.models::Article.order(:id).pluck(:title).join(",")

  def fresh(viewer)
    keeper = Castellan.keeper
    Castellan.keeper = nil
    now { get(viewer) }
  ensure
    Castellan.keeper = keeper
  end

  # Reads past the query cache of the request.
  def now(&) = library.models::Base.uncached(&)

  def get(viewer, coding = nil)
    response = request(viewer, "HTTP_ACCEPT_ENCODING" => coding)
    raise "#{response.status}: #{response.body[0, 200]}" unless response.status == 200

    coding && response["content-encoding"] ? Zlib.gunzip(response.body.b) : response.body.b
  end

  def request(viewer, **fields)
    Rack::MockRequest.new(@app).get("/articles?include=author,tags", { "test.viewer" => viewer, **fields }.compact)
  end

  # Each viewer sees their own articles, and which of these they have read.
  def app
    articles = resource_named(:FaultsArticleResource) { |models| resource(models) }
    articles = resource_named(:NotifiedFaultsArticleResource) { Class.new(articles) { cache :notified } } if @setting&.kind == :notified
    read = resource_named(:MarkedArticleResource) { |models| marked(models) }
    article = library.models::Article
    Castellan.app do
      resource articles, at: "articles"
      resource read, at: "marked", scope: ->((author, _)) { article.where(author_id: author) }
      authenticate { |env| env["test.viewer"] }
    end
  end

  def resource_named(name)
    models = library.models
    models.const_defined?(name, false) ? models.const_get(name) : models.const_set(name, yield(models))
  end

  def marked(models)
    Class.new(models::ArticleResource) do
      type "articles"
      cache :notified
      per_viewer(:read) { |ids, (_, number)| ids.select { |id| ((id.to_i + number) % 9).even? } }
    end
  end

  def resource(models)
    Class.new(models::PersonalArticleResource) do
      type "articles"
      scope { |articles, viewer| articles.where(author_id: viewer) }
      per_viewer(:read) { |ids, viewer| ids.select { |id| (id.to_i + viewer.to_i).odd? } }
    end
  end
end
