# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The matchers in RSpec, which runs in its own process.
class DetectRspecTest < Minitest::Test
  HELPER = <<~RUBY
    require "active_record"
    require "castellan/detect/rspec"

    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define do
      create_table(:authors) { |table| table.string :name }
      create_table(:books) { |table| table.integer :author_id }
    end

    class Author < ActiveRecord::Base
      has_many :books
    end

    class Book < ActiveRecord::Base
      belongs_to :author
    end

    def write_books(count) = count.times { |number| Book.create!(author: Author.create!(name: "author \#{number}")) }
  RUBY

  def test_repeated_queries_fail_an_example_with_line_fix_and_exemption
    output = rspec(<<~RUBY, failures: 1)
      before { write_books(3) }
      it("asks once") { expect { Book.includes(:author).map { |book| book.author.name } }.not_to repeat_queries }
      it("asks often") { expect { Book.all.map { |book| book.author.name } }.not_to repeat_queries }
      it("is meant to") { expect { Book.all.map { |book| book.author.name } }.to repeat_queries }
    RUBY
    assert_match(/expected no queries to repeat: 1 finding\n\s+n_plus_one: 3 queries at books_spec\.rb:6 through Book#author/, output)
    assert_includes output, "add .preload(:author)"
    assert_match(/- file: books_spec\.rb\n\s+association: Book#author\n\s+reason: ''/, output)
  end

  def test_repeat_queries_fails_if_no_query_repeats
    output = rspec(%(it("none") { expect { Book.count }.to repeat_queries }\n), failures: 1)
    assert_includes output, "expected queries to repeat, but none did"
  end

  def test_a_known_finding_passes
    known = { "known.yml" => "- {file: books_spec.rb, association: 'Book#author', reason: three are few}\n" }
    rspec(<<~RUBY, files: known)
      before { write_books(3) }
      it("is known") { expect { Book.all.map { |book| book.author.name } }.not_to repeat_queries.known("known.yml") }
      it("is few") { expect { Book.all.map { |book| book.author.name } }.not_to repeat_queries(repeats: 99) }
    RUBY
  end

  def test_constant_queries_while_records_are_added
    output = rspec(<<~RUBY, failures: 2)
      def constant = perform_constant_queries.while_adding { |count| write_books(count) }
      it("is constant") { expect { Book.includes(:author).map { |book| book.author.name } }.to constant }
      it("grows") { expect { Book.all.map { |book| book.author.name } }.to constant }
      it("sees none of them") { expect { Author.limit(1).to_a }.to constant }
      it("grows as told") { expect { Book.all.map(&:author) }.not_to constant }
    RUBY
    assert_includes output, "expected as many queries for many records as for few: 1.0 more queries per record at books_spec.rb:6"
    assert_match(/each additional record costs (?:-?\d+\.\d+ ms|no time .*?), \d+ objects/, output)
    assert_includes output, "the added records were not part of the work"
  end

  def test_a_block_with_an_argument_receives_the_number_of_records
    output = rspec(<<~RUBY, failures: 2)
      before { write_books(20) }
      it("is constant") { expect { |count| Book.limit(count).includes(:author).map(&:author) }.to perform_constant_queries }
      it("grows") { expect { |count| Book.limit(count).map { |book| book.author.name } }.to perform_constant_queries }
      it("is not told") { expect { Book.count }.to perform_constant_queries }
    RUBY
    assert_includes output, "1.0 more queries per record at books_spec.rb:6"
    assert_includes output, "RSpec: .while_adding { |count| … }"
  end

  def test_a_block_given_to_the_matcher_adds_the_records
    output = rspec(<<~RUBY, failures: 2)
      it("braces") { expect { Book.all.map { |book| book.author.name } }.to perform_constant_queries { |count| write_books(count) } }
      it("do") do
        expect { Book.all.map { |book| book.author.name } }.to perform_constant_queries do |count|
          write_books(count)
        end
      end
      it("is constant") { expect { Book.includes(:author).map { |book| book.author.name } }.to perform_constant_queries { |count| write_books(count) } }
    RUBY
    assert_equal 2, output.scan("1.0 more queries per record").size
  end

  private

  # @return [String] the output of RSpec
  def rspec(examples, files: {}, failures: 0)
    Dir.mktmpdir do |dir|
      spec = "require_relative 'helper'\n\nRSpec.describe Book do\n#{examples}after { Book.delete_all }\nend\n"
      { "helper.rb" => HELPER, "books_spec.rb" => spec, **files }.each { |name, text| File.write(File.join(dir, name), text) }
      run = 'require "rspec/core"; exit RSpec::Core::Runner.run(%w[books_spec.rb])'
      output = Castellan::PreloadedRails.run(run, chdir: dir, env: { "SPEC_OPTS" => nil }).first
      assert_match(/ #{failures} failures?$/, output)
      output
    end
  end
end
