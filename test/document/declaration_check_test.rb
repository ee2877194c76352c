# frozen_string_literal: true

require "test_helper"
require_relative "library"

# What only one kind of model can get wrong; the mistakes that both can make are in test/resource/declaration_test.rb.
class DeclarationCheckTest < Minitest::Test
  def test_a_path_that_ends_in_a_reader_of_the_models_own_is_refused
    models = Library.active_record(:sqlite).models
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

    error = assert_raises(Castellan::DeclarationError) { resource.checked_rows }
    assert_includes error.message, "LoudAuthor reads name by a method of its own; " \
                                   "write attribute(:author_name) { |record| record.loud_author&.name }"
  end
end
