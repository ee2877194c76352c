# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# A digest of what declares a resource: another text of a file that takes part is another digest.
class SourceDigestTest < Minitest::Test
  def test_a_link_or_meta_of_a_superclass_in_another_file
    Dir.mktmpdir do |directory|
      [%(link :self, "/v%d/{id}"), %(meta({ version: %d }))].each do |line|
        assert_equal 2, [1, 1, 2].map { |version| digest(directory, format(line, version)) }.uniq.size
      end
    end
  end

  def test_the_source_is_read_when_the_resource_is_checked
    store = Castellan::Store::NullStore.new
    Castellan.keep(store: store, versions: Castellan::Versions::CommitVersions.new(store))
    Dir.mktmpdir do |directory|
      known, unknown = Array.new(2) { resource(directory, "cache :exact") }
      expected = digest(directory, "cache :exact")
      known.checked_rows
      File.write(File.join(directory, "thing.rb"), "a later deployment")
      assert_equal expected, Castellan::Keeper::SourceDigest.of(known.definition)
      refute_equal expected, Castellan::Keeper::SourceDigest.of(unknown.definition)
    end
  ensure
    Castellan.keeper = nil
  end

  private

  def digest(directory, line)
    Castellan::Keeper::SourceDigest.of(resource(directory, line).definition)
  end

  def resource(directory, line)
    base = load_in(directory, "base", "Class.new(Castellan::Resource) { #{line} }")
    resource = load_in(directory, "thing", "->(base) { Class.new(base) { type('things') && attributes(:name) && id(:id) } }").call(base)
    resource.define_singleton_method(:name) { "ThingResource" }
    resource
  end

  # Always of the same path, which is part of the digest as well.
  def load_in(directory, name, text)
    path = File.join(directory, "#{name}.rb")
    File.write(path, text)
    eval(text, TOPLEVEL_BINDING, path) # rubocop:disable Security/Eval
  end
end
