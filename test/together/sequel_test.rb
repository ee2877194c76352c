# frozen_string_literal: true

require "test_helper"
require "document/library"
require "castellan/serializer"

# Records of one document load an association of Sequel's when the first of them walks it.
module TogetherOfSequelContract
  def setup
    library.fill
  end

  def test_blocks_that_walk_three_associations_take_one_query_for_each
    read = author(:articles) { |article| [article.comments.first&.body, article.comments.size, article.tags.any?] }
    both(4) { |options| read.new(authors, options).to_json }
    both(4) { |options| read.new(authors.all, options).to_json }
  end

  def test_a_resource_loads_together
    of = models::Article
    resource = Class.new(Castellan::Resource) do
      model of
      attributes :title
      attribute(:mentor) { |one| [one.author.name, one.author.mentor&.name] }
    end
    both(3) { |options| resource.document(of.order(:id), **options).to_json }
  end

  def test_to_one_associations_share_their_record
    article = serializer { attribute(:mentor) { |one| [one.author.name, one.author.mentor&.name, one.author.articles.size] } }
    both(4) { |options| article.new(models::Article.order(:id), options).to_json }
  end

  def test_associations_that_a_sibling_does_not_walk_stay_unloaded
    records = authors.all
    author(:articles, if: 1) { |article| article.title }.new(records).to_json
    assert_equal [true, false, false], records.map { |record| record.associations.key?(:articles) }
  end

  def test_limits_blocks_and_reloads_are_queried_for_each
    models::Author.one_to_many :two_articles, class: models::Article, key: :author_id, order: :id, limit: 2
    limited = serializer { attribute(:titles) { |one| one.two_articles.map(&:title) } }
    both(4) { |options| limited.new(authors, options).to_json }
    dynamic = serializer { attribute(:titles) { |one| one.articles { |dataset| dataset.where { id > 2 } }.map(&:title) } }
    both(4) { |options| dynamic.new(authors, options).to_json }
    twice = serializer { attribute(:titles) { |one| one.articles && one.articles(reload: true).map(&:title) } }
    both(5) { |options| twice.new(authors, options).to_json }
  end

  def test_callbacks_after_loading_run_once_for_each
    loaded = []
    models::Author.one_to_many :read_articles, class: models::Article, key: :author_id, after_load: ->(one, _) { loaded << one.id }
    author(:read_articles) { |article| article.title }.new(authors).to_json
    assert_equal [1, 2, 3], loaded
  end

  def test_nothing_loads_together_outside_of_a_document
    author(:articles) { |article| article.title }.new(authors).to_json
    records = authors.all
    assert_equal(3, library.queries { records.each(&:articles) }.size)
  end

  private

  def models = library.models

  def authors = models::Author.order(:id)

  def serializer(&body)
    Class.new do
      include Castellan::Serializer

      set_type :thing
      class_eval(&body)
    end
  end

  def author(association, if: nil)
    only = binding.local_variable_get(:if)
    serializer do
      attribute(:read) { |one| only.nil? || only == one.id ? one.public_send(association).map { |related| yield related } : [] }
    end
  end

  # Compares the bytes, and the number of queries together.
  def both(expected)
    documents = []
    counts = [true, false].map { |on| library.queries { documents << yield(together: on) }.size }
    assert_equal documents.last, documents.first
    assert_equal expected, counts.first
    assert_operator counts.last, :>=, counts.first
  end
end

class TogetherOfSequelOnSqliteTest < Minitest::Test
  include TogetherOfSequelContract

  def library = Library.sequel(:sqlite)
end

class TogetherOfSequelOnPostgresTest < Minitest::Test
  include TogetherOfSequelContract

  def setup
    needs :postgres
    super
  end

  def library = Library.sequel(:postgres)
end
