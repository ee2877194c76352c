# frozen_string_literal: true

require "test_helper"
require_relative "library"

# Declaration errors that only one ORM can have; those of both are in test/resource/declaration_test.rb.
class DeclarationCheckTest < Minitest::Test
  def test_a_path_to_an_overridden_reader_loads_models
    library = Library.active_record(:sqlite).tap(&:fill)
    models = library.models
    author = Class.new(models::Author) do
      def self.name = "LoudAuthor"

      def name
        super.upcase
      end
    end
    article = Class.new(models::Article) { belongs_to :loud_author, anonymous_class: author, foreign_key: :author_id }
    resource = Class.new(Castellan::Resource) do
      model article
      type "articles"
      attribute :author_name, from: "loud_author.name"
    end

    written = nil
    asked = library.queries { written = JSON.parse(resource.render(article.order(:id)))["data"] }
    assert_equal %w[GRACE EDSGER ADA], written.first(3).map { |object| object["attributes"]["author_name"] }
    assert_equal 2, asked.size, asked.join("; ")
    assert_includes resource.document.explain, "reads name by its own method ("
  end

  def test_a_subclass_loaded_later_at_the_end_of_a_path_is_considered
    models = Library.active_record(:sqlite).tap(&:fill).models
    author = Class.new(models::Author) do
      self.inheritance_column = :name
      class << self
        attr_accessor :later

        def name = "Person"
        def find_sti_class(_name) = later || self
        def sti_name = nil
        def finder_needs_type_condition? = false
      end
    end
    article = Class.new(models::Article) { belongs_to :person, anonymous_class: author, foreign_key: :author_id }
    resource = Class.new(Castellan::Resource) do
      model article
      type "articles"
      attribute :mentor, from: "person.mentor_id"
    end

    mentors = -> { JSON.parse(resource.render(article.order(:id)))["data"].map { |object| object.dig("attributes", "mentor") } }
    before = mentors.call
    author.later = Class.new(author) { def mentor_id = 99 }
    assert_equal before.map { |_| 99 }, mentors.call
    refute_includes before, 99
  end

  def test_a_path_through_a_polymorphic_association_is_a_declaration_error
    models = Library.active_record(:sqlite).models
    note = Class.new(models::Article) do
      def self.name = "Note"
      self.table_name = "articles"
      belongs_to :subject, polymorphic: true, foreign_key: :author_id, foreign_type: :title
    end
    { "attribute :name" => -> { attribute :name, from: "subject.name" }, "filter name" => -> { filter :name, from: "subject.name" },
      "sort name" => -> { sort :name, from: "subject.name" } }.each do |what, declaration|
      resource = Class.new(Castellan::Resource) do
        model note
        type "notes"
        class_exec(&declaration)
      end
      error = assert_raises(Castellan::DeclarationError) { Castellan.app { resource resource } }
      assert_includes error.message, "#{what}: subject is polymorphic, and from: walks associations to one table only"
    end
  end

  # As with ActiveHash, whose records are in memory.
  class Land
    attr_reader :id

    def initialize(id) = @id = id
  end

  def test_an_association_to_records_that_are_in_no_table_names_the_fix
    { "belongs_to :land" => -> { belongs_to :land }, "attribute :name" => -> { attribute :name, from: "land.name" },
      "attribute :name, preloads" => -> { attribute(:name, preloads: :land) { |record| record.land.name } } }.each do |what, declaration|
      [article_of_a_land, article_of_a_land(plain: true)].each do |article|
        error = assert_raises(Castellan::DeclarationError) { of(article, &declaration).checked_rows }
        assert_includes error.message, "#{what}: land leads to records that are in no table; read them in a block, { |record| record.land }"
      end
    end
  end

  def test_a_block_reads_an_association_to_records_that_are_in_no_table
    land = Class.new(Castellan::Resource) { type "lands" }
    article = article_of_a_land
    resource = of(article) { belongs_to(:land, resource: land, &:land) }
    linked = JSON.parse(resource.render(article.order(:id)))["data"].map { |object| object.dig("relationships", "land", "data", "id") }
    assert_equal article.order(:id).map { |record| record.land&.id }, linked
  end

  private

  # ActiveHash returns its class; for a plain one, ActiveRecord raises ArgumentError.
  def article_of_a_land(plain: false)
    Class.new(Library.active_record(:sqlite).tap(&:fill).models::Article) do
      def self.name = "LandArticle"
      belongs_to :land, foreign_key: :author_id, class_name: "DeclarationCheckTest::Land"
      reflect_on_association(:land).define_singleton_method(:klass) { Land } unless plain
      def land = author_id && Land.new(author_id.to_s)
    end
  end

  def of(article, &declaration)
    Class.new(Castellan::Resource) do
      model article
      type "articles"
      class_exec(&declaration)
    end
  end
end
