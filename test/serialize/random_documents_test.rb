# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "random_documents"

# For random documents, both encoders write the same bytes, and these contain the values of the rows.
#
#   DOCUMENTS=100000 SEED_OF_DOCUMENTS=7 bin/test test/serialize/random_documents_test.rb
class RandomDocumentsTest < Minitest::Test
  include Castellan::Drafts

  COUNT = Integer(ENV.fetch("DOCUMENTS") { Castellan::TestHelpers.all? ? 10_000 : 500 })
  SEED = Integer(ENV.fetch("SEED_OF_DOCUMENTS", 20_240_131))
  Ruby = Castellan::Serialize::RubyEncoder

  def test_both_encoders_give_the_same_bytes
    needs_extension
    each_document do |root, options, where|
      ruby, native = [Ruby, native_encoder].map { |encoder| encode(root, encoder:, **options) }
      assert_equal ruby.body, native.body, where
      assert_equal ruby.holes, native.holes, where
    end
  end

  def test_both_encoders_give_the_same_records
    needs_extension
    each_document do |root, options, where|
      plan, row_set = build(root, format: options[:format])
      template = Castellan::Serialize::Template.new(plan, escape: options[:escape])
      assert_equal(*[Ruby, native_encoder].map { |encoder| encoder.encode_each(row_set, template) }, where)
      assert_equal(*[Ruby, native_encoder].map { |encoder| encoder.encode_part(row_set, template) }, where)
    end
  end

  def test_the_documents_contain_the_values_of_the_rows
    each_document(asides: false) do |root, options, where|
      output = encode(root, encoder: Ruby, **options)
      found = JSON.parse(fill(output))
      options[:format] == :nested ? assert_nested(root, found, options, where) : assert_json_api(root, found, options, where)
    end
  end

  private

  def native_encoder = Castellan::Serialize::NativeEncoder

  def needs_extension
    skip "needs the C extension (rake compile)" unless Castellan::Serialize.native?
  end

  def each_document(count = COUNT, asides: true)
    count.times do |number|
      random = Random.new(SEED + number)
      root = Castellan::RandomDocuments.new(random, asides:).draft
      options = { format: %i[json_api json_api nested].sample(random:), escape: %i[json rails rails_html].sample(random:),
                  single: random.rand < 0.2 }
      yield root, options, "DOCUMENTS=1 SEED_OF_DOCUMENTS=#{SEED + number}"
    end
  end

  def fill(output)
    bytes = output.body.b
    output.holes.each_slice(3).reverse_each { |offset, _, id| bytes.insert(offset, JSON.generate("hole of #{id}").b) }
    bytes.force_encoding(Encoding::UTF_8)
  end

  def assert_json_api(root, found, options, where)
    rows = options[:single] ? root.rows.first(1) : root.rows
    data = options[:single] ? [found["data"]].compact : found["data"]
    assert_equal rows.map { |row| row[0].to_s }, data.map { |record| record["id"] }, where
    rows.zip(data) { |row, record| assert_record(root, row, record, where) }
    return refute(found.key?("included"), where) if root.edges.none?(&:to)

    expected = reachable(root, rows)
    assert_equal expected.keys.sort, found["included"].map { |record| record.values_at("type", "id") }.sort, where
  end

  def assert_record(draft, row, record, where)
    assert_equal [draft.type, row[0].to_s], record.values_at("type", "id"), where
    assert_equal draft.coders.keys.drop(1).map(&:to_s), (record["attributes"] || {}).keys, where
    assert_equal draft.edges.select(&:written).map { |edge| edge.name.to_s }, (record["relationships"] || {}).keys, where
    draft.edges.select(&:written).each do |edge|
      links = linked(draft, row, edge).map { |id| { "type" => edge.type, "id" => id } }
      assert_equal [edge.many ? links : links.first], [record["relationships"][edge.name.to_s]["data"]], where
    end
  end

  def assert_nested(root, found, options, where)
    rows = options[:single] ? root.rows.first(1) : root.rows
    rows.zip(options[:single] ? [found] : found) { |row, record| assert_nested_record(root, row, record, where) }
  end

  def assert_nested_record(draft, row, record, where)
    assert_equal draft.coders[:id] == :integer ? row[0] : row[0].to_s, record["id"], where
    assert_equal draft.edges.select { |edge| edge.to && edge.written }.map { |edge| edge.name.to_s }, record.keys & draft.edges.map { |edge|
      edge.name.to_s
    }, where
    draft.edges.select { |edge| edge.to && edge.written }.each do |edge|
      rows = linked(draft, row, edge).filter_map { |id| edge.to.rows.find { |related| related[0].to_s == id } }
      written = edge.many ? record[edge.name.to_s] : [record[edge.name.to_s]].compact
      rows = rows.first(1) unless edge.many
      assert_equal rows.size, written.size, where
      rows.zip(written) { |related, inner| assert_nested_record(edge.to, related, inner, where) }
    end
  end

  def linked(draft, row, edge)
    ids = case edge.links
          when InColumn then edge.many ? row[edge.links.position].to_s.split(",") : [row[edge.links.position].to_s]
          else paired(row[0].to_s, edge.links)
          end
    ids = ids.reject(&:empty?)
    draft && edge.many ? ids : ids.first(1)
  end

  def paired(id, pairs)
    pairs = pairs.pairs if pairs.is_a?(Lists)
    pairs.rows.select { |pair| pair[pairs.parent_position].to_s == id }.map { |pair| pair[pairs.related_position].to_s }
  end

  def reachable(root, rows)
    found = {}
    rows.each { |row| follow(root, row, found) }
    found.except(*rows.map { |row| [root.type, row[0].to_s] })
  end

  def follow(draft, row, found)
    draft.edges.select(&:to).each do |edge|
      linked(draft, row, edge).each do |id|
        related = edge.to.rows.find { |candidate| candidate[0].to_s == id } or next
        found[[edge.to.type, id]] = true
        follow(edge.to, related, found)
      end
    end
  end
end
