# frozen_string_literal: true

require "test_helper"
require "open3"

# A server that starts without LANG, as by systemd or cron, reads files as US-ASCII by default.
class PlainLocaleTest < Minitest::Test
  APPLICATION = <<~RUBY
    # encoding: utf-8
    require "active_record"
    require "rack/mock_request"
    require "castellan"

    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define do
      create_table(:writers) { |t| t.string :name }
      create_table(:notes) { |t| t.references(:writer) && t.string(:text) }
    end

    class Note < ActiveRecord::Base; end

    class Writer < ActiveRecord::Base
      has_many :notes, -> { where(text: "é") } # Grüße
    end

    Note.create!(writer_id: Writer.create!(name: "Zoë").id, text: "é")

    class NoteResource < Castellan::Resource
      model Note
      attributes :text
    end

    class WriterResource < Castellan::Resource
      model Writer
      attributes :name
      has_many :notes
      cache :exact
    end

    versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    versions.install(%w[writers notes])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    $stdout.binmode
    puts Encoding.default_external, WriterResource.document(:all, query: { "include" => "notes" }).explain[/kept: .*/]
    app = Castellan.app do
      pages title: "Grüße"
      resource WriterResource
    end
    %w[text/html */*].each { |type| puts Rack::MockRequest.new(app).get("/writers?include=notes", "HTTP_ACCEPT" => type).body }
  RUBY

  def test_pages_and_scopes_may_contain_any_text
    Dir.mktmpdir do |directory|
      File.write(file = File.join(directory, "application.rb"), APPLICATION)
      output, errors, status = Open3.capture3({ "LC_ALL" => "C" }, RbConfig.ruby, "-w", "-I#{ROOT}/lib", file, binmode: true)
      assert status.success?, errors
      output.force_encoding(Encoding::UTF_8)
      assert_match(/\AUS-ASCII\nkept: the document/, output)
      assert_match(%r{<title>.*Grüße.*</title>}, output)
      assert_equal 1, output.scan(/"name":"Zoë"/).size
    end
  end

  ROOT = File.expand_path("../..", __dir__)
  private_constant :ROOT, :APPLICATION
end
