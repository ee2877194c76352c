# frozen_string_literal: true

require "bigdecimal"
require "json"
require_relative "drafts"

module Castellan
  # The contract of every encoder. Include it in a test that defines `encoder`.
  module EncoderContract
    include Drafts

    def test_a_json_api_document_byte_for_byte
      expected = '{"data":[{"type":"users","id":"7","attributes":{"email":"ada@example.com","age":36},"relationships":' \
                 '{"roles":{"data":[{"type":"roles","id":"1"},{"type":"roles","id":"2"}]},"employee":{"data":null}}}],' \
                 '"included":[{"type":"roles","id":"1","attributes":{"title":"admin"}},{"type":"roles","id":"2","attributes":' \
                 '{"title":"\"keeper\""}}],"meta":{"total":1}}'
      assert_equal expected, write(users, tail: ',"meta":{"total":1}').body
      assert_equal Encoding::UTF_8, write(users).body.encoding
    end

    def test_a_nested_document_byte_for_byte
      assert_equal '[{"id":7,"email":"ada@example.com","age":36,"roles":[{"id":1,"title":"admin"},{"id":2,"title":"\"keeper\""}]}]',
                   write(users, format: :nested, tail: ",ignored").body
    end

    def test_a_single_record_is_an_object_or_null
      plain = draft("users", { id: :text }, [["a/b"]])
      assert_equal '{"data":{"type":"users","id":"a/b"}}', write(plain, single: true).body
      assert_equal '{"id":"a/b"}', write(plain, single: true, format: :nested).body
      plain.rows = []
      assert_equal '{"data":null,"meta":{}}', write(plain, single: true, tail: ',"meta":{}').body
      assert_equal "null", write(plain, single: true, format: :nested).body
      assert_equal '{"data":[]}', write(plain).body
    end

    def test_every_coder_writes_the_values_of_the_drivers
      WRITTEN.each do |coder, values|
        values.each { |value, json| assert_equal json, value_of(coder, value), "#{coder} #{value.inspect}" }
      end
    end

    def test_every_coder_raises_for_unknown_values
      REFUSED.each do |coder, values|
        values.each do |value|
          error = assert_raises(EncodingError, "#{coder} #{value.inspect}") { value_of(coder, value) }
          assert_match(/\Athings "1", member "value": /, error.message)
          assert_equal Encoding::UTF_8, error.message.encoding
        end
      end
    end

    def test_text_is_escaped_as_the_json_gem_does
      every = [*0..0x2ff, 0x2028, 0x2029, 0x1F3F0].pack("U*")
      assert_equal JSON.generate(every), value_of(:text, every)
      (0..17).each { |lead| assert_equal JSON.generate("a" * lead + every), value_of(:text, "a" * lead + every) }
    end

    def test_text_is_escaped_as_rails_does
      text = "<a href=\"x\">&\u2027\u2028\u2029\u202a"
      assert_equal "\"<a href=\\\"x\\\">&\u2027\\u2028\\u2029\u202a\"", value_of(:text, text, escape: :rails)
      assert_equal "\"\\u003ca href=\\\"x\\\"\\u003e\\u0026\u2027\\u2028\\u2029\u202a\"", value_of(:text, text, escape: :rails_html)
      assert_equal '{"a":"\u003c/script\u003e"}', value_of(:json, '{"a":"</script>"}', escape: :rails_html)
    end

    def test_other_encodings_are_converted
      assert_equal '"é"', value_of(:text, "é".encode("ISO-8859-1"))
      assert_equal '"é"', value_of(:text, "é".b)
      assert_equal '"é\n"', value_of(:text, "é\n".encode("UTF-16LE"))
    end

    def test_invalid_utf8_names_type_id_and_member
      ["\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x28\xa1", "12345678\x80", "\xf0\x82\x82\xac"].each do |text|
        error = assert_raises(EncodingError, text.inspect) { value_of(:text, text) }
        assert_includes error.message, 'things "1", member "value"'
        assert_includes error.message, "is not valid UTF-8"
      end
    end

    def test_an_unknown_coder_raises
      assert_includes assert_raises(ArgumentError) { value_of(:colour, "red") }.message, ":colour"
    end

    def test_computed_values_are_written_as_they_are
      thing = draft("things", { id: :integer, label: ['{"a":[1]}', '"<"'] }, [[1], [2]])
      assert_equal '{"data":[{"type":"things","id":"1","attributes":{"label":{"a":[1]}}},' \
                   '{"type":"things","id":"2","attributes":{"label":"\u003c"}}]}', write(thing, escape: :rails_html).body
    end

    def test_a_missing_computed_value_raises
      error = assert_raises(EncodingError) { write(draft("things", { id: :integer, label: [nil] }, [[4]])) }
      assert_includes error.message, 'things "4", member "label"'
    end

    def test_per_viewer_attributes_are_holes
      author = draft("people", { id: :integer, name: :text, known: :viewer }, [[5, "Ada"]])
      posts = draft("posts", { id: :integer, title: :text, read: :viewer, liked: :viewer }, [[1, "Ä", 5], [2, "B", 5]],
                    edges: [edge(:author, InColumn.new(2), type: "people", to: author)])
      output = write(posts)
      holes = output.holes.each_slice(3).to_a
      assert_equal [[0, "1"], [1, "1"], [0, "2"], [1, "2"], [2, "5"]], holes.map { |_, index, id| [index, id] }
      filled = fill(output.body, holes) { |index, id| "\"#{index}-#{id}\"" }
      assert_equal "1-2", JSON.parse(filled)["data"][1]["attributes"]["liked"]
      assert_equal({ "name" => "Ada", "known" => "2-5" }, JSON.parse(filled)["included"][0]["attributes"])
    end

    def test_linkage_from_a_column
      { nil => [], "" => [], 3 => %w[3], "3" => %w[3], "3,1,2" => %w[3 1 2] }.each do |value, ids|
        user = draft("users", { id: :integer }, [[1, value]], edges: [edge(:roles, InColumn.new(1), many: true, type: "roles")])
        assert_equal ids, related(user, "roles").map { |link| link["id"] }
      end
      { nil => nil, "" => nil, 3 => "3", "a,b" => "a,b" }.each do |value, id|
        user = draft("users", { id: :integer }, [[1, value]], edges: [edge(:boss, InColumn.new(1), type: "users")])
        assert_equal [id && { "type" => "users", "id" => id }], [related(user, "boss")]
      end
    end

    def test_linkage_from_pairs_keeps_their_order
      pairs = [["2", "9"], [1, 8], [2, "7"], [nil, 6], [1, nil], [3, 5], [1, "x\"y"]]
      user = draft("users", { id: :integer }, [[1], ["2"], [4]], edges: [edge(:roles, Pairs.new(pairs, 0, 1), many: true, type: "roles")])
      assert_equal [["8", "x\"y"], %w[9 7], []], data(user).map { |one| one["relationships"]["roles"]["data"].map { |link| link["id"] } }
    end

    def test_linkage_from_two_lists_equals_linkage_from_pairs
      [[], [[1, 9]], [[2, 9], [1, 8], [2, 7], [3, 5], [1, 8], [2, 10**17], [2, 2**62], [1, -(2**63)], [4, -5]]].each do |pairs|
        columns = pairs.empty? ? [nil, nil] : pairs.transpose.map { |column| "{#{column.join(",")}}" }
        found = [Pairs.new(pairs, 0, 1), Lists.new([columns])].map do |links|
          roles = draft("roles", { id: :integer }, [[8], [9], [2**62]])
          edges = [edge(:roles, links, many: true, type: "roles", to: roles)]
          write(draft("users", { id: :integer }, [[1], ["2"], [4], [1]], edges:)).body
        end
        assert_equal 1, found.uniq.size, found.join("\n")
      end
    end

    def test_lists_of_other_values_or_different_length_raise
      [["{1,2", "{1,2}"], ["{a}", "{1}"], ["{1}", "{1,}"], ["{1}", ""], ["", "{1}"]].each do |columns|
        users = draft("users", { id: :integer }, [[1]], edges: [edge(:roles, Lists.new([columns]), many: true, type: "roles")])
        assert_raises(JSON::ParserError, columns.inspect) { write(users) }
      end
    end

    def test_a_to_one_relationship_from_pairs_is_the_first
      user = draft("users", { id: :integer }, [[1], [2]], edges: [edge(:key, Pairs.new([[1, 4], [1, 5]], 0, 1), type: "keys")])
      assert_equal [{ "type" => "keys", "id" => "4" }, nil], data(user).map { |one| one["relationships"]["key"]["data"] }
    end

    def test_only_records_reachable_by_links_are_included_and_each_once
      roles = draft("roles", { id: :integer, title: :text }, [[1, "a"], [2, "b"], [3, "c"]])
      user = draft("users", { id: :integer }, [[1, "3,1,9"], [2, "1,3"]],
                   edges: [edge(:roles, InColumn.new(1), many: true, type: "roles", to: roles)])
      assert_equal [%w[roles 3], %w[roles 1]], included(user)
    end

    def test_included_comes_in_the_order_of_jsonapi_serializer
      people = draft("people", { id: :integer }, [[5], [6]])
      comments = draft("comments", { id: :integer }, [[10, 1, 5], [11, 1, 6], [12, 2, 5]],
                       edges: [edge(:author, InColumn.new(2), type: "people", to: people)])
      posts = draft("posts", { id: :integer }, [[1, 6], [2, 5]],
                    edges: [edge(:comments, Pairs.new(comments.rows, 1, 0), many: true, type: "comments", to: comments),
                            edge(:editor, InColumn.new(1), type: "people", to: draft("people", { id: :integer }, [[6], [5]]))])
      assert_equal [%w[people 5], %w[comments 10], %w[people 6], %w[comments 11], %w[comments 12]], included(posts)
    end

    def test_primary_data_is_never_included_and_cycles_end
      again = draft("users", { id: :integer }, [[1, 2], [2, 3], [3, 1]], edges: [edge(:boss, InColumn.new(1), type: "users")])
      bosses = draft("users", { id: :integer }, [[1, 2], [2, 3], [3, 1]], edges: [edge(:boss, InColumn.new(1), type: "users", to: again)])
      users = draft("users", { id: :integer }, [["1", 2], ["2", 1]], edges: [edge(:boss, InColumn.new(1), type: "users", to: bosses)])
      assert_equal [%w[users 3]], included(users)
    end

    def test_a_relationship_to_several_types
      files = draft("files", { id: :integer, name: :text }, [[5, "a.txt"], [6, "b.txt"]])
      notes = draft("notes", { id: :text }, [["5"], ["x"]])
      pairs = [[1, 5, 0], [1, 5, 1], [2, "x", 1], [1, 7, 0], [1, 3, 2], [nil, 6, 0], [2, nil, 0]]
      root = draft("mails", { id: :integer }, [[1], [2], [3]],
                   edges: [edge(:parts, Pairs.new(pairs, 0, 1, 2), many: true, type: %w[files notes links], to: [files, notes, nil]),
                           edge(:first, Pairs.new(pairs, 0, 1, 2), type: %w[files notes links], to: [nil, nil, nil])])
      found = data(root).map { |mail| mail["relationships"] }
      assert_equal [[%w[files 5], %w[notes 5], %w[files 7], %w[links 3]], [%w[notes x]], []],
                   found.map { |mail| mail["parts"]["data"].map(&:values) }
      assert_equal [%w[files 5], %w[notes x], nil], found.map { |mail| mail["first"]["data"]&.values }
      assert_equal [%w[files 5], %w[notes 5], %w[notes x]], included(root)
      assert_equal '[{"id":1,"parts":[{"id":5,"name":"a.txt"},{"id":"5"}]},{"id":2,"parts":[{"id":"x"}]},{"id":3,"parts":[]}]',
                   write(root, format: :nested).body
    end

    def test_nested_records_are_written_in_each_parent
      people = draft("people", { id: :integer, name: :text }, [[5, "Ada"]])
      comments = draft("comments", { id: :integer }, [[10, 1, 5], [11, 1, nil], [12, 2, 5]],
                       edges: [edge(:author, InColumn.new(2), type: "people", to: people)])
      posts = draft("posts", { id: :integer }, [[1], [2], [3]],
                    edges: [edge(:comments, Pairs.new(comments.rows, 1, 0), many: true, type: "comments", to: comments),
                            edge(:tags, InColumn.new(0), many: true, type: "tags")])
      assert_equal '[{"id":1,"comments":[{"id":10,"author":{"id":5,"name":"Ada"}},{"id":11,"author":null}]},' \
                   '{"id":2,"comments":[{"id":12,"author":{"id":5,"name":"Ada"}}]},{"id":3,"comments":[]}]',
                   write(posts, format: :nested).body
    end

    def test_ids_compare_by_their_text
      uuid = "6f1c1a0e-0000-4000-8000-00000000000a"
      roles = draft("roles", { id: :text }, [[uuid], ["01"], [18_446_744_073_709_551_616]])
      user = draft("users", { id: :integer }, [[1, "#{uuid},1,01,18446744073709551616"]],
                   edges: [edge(:roles, InColumn.new(1), many: true, type: "roles", to: roles)])
      assert_equal [["roles", uuid], %w[roles 01], %w[roles 18446744073709551616]], included(user)
    end

    def test_a_row_without_an_id_raises_in_json_api_and_is_null_when_nested
      thing = draft("things", { id: :integer, name: :text }, [[nil, "x"]])
      assert_includes assert_raises(EncodingError) { write(thing) }.message, "things"
      assert_equal '[{"id":null,"name":"x"}]', write(thing, format: :nested).body
    end

    def test_keys_are_escaped
      thing = draft("a\"b", { id: :integer, "k\"\n": :integer }, [[1, 2]])
      assert_equal({ "k\"\n" => 2 }, data(thing)[0]["attributes"])
      assert_equal "a\"b", data(thing)[0]["type"]
    end

    def test_each_record_alone
      roles = draft("roles", { id: :integer }, [[1], [2]])
      users = draft("users", { id: :integer, mine: :viewer }, [[7, "1,2"], [8, "2"]],
                    edges: [edge(:roles, InColumn.new(1), many: true, type: "roles", to: roles)])
      plan, row_set = build(users)
      bodies = write(users).body.scan(/\{"type":"users".*?\}\]\}\}\}/)
      records = encoder.encode_each(row_set, Serialize::Template.new(plan))
      assert_equal [["7", bodies[0], [46, 0, "7"]], ["8", bodies[1], [46, 0, "8"]]], records
      assert_equal [Encoding::UTF_8], records.map { |_, body, _| body.encoding }.uniq
    end

    def test_a_part_contains_primary_records_and_the_ids_of_related_ones
      people = draft("people", { id: :integer }, [[5], [6]])
      comments = draft("comments", { id: :integer }, [[10, 1, 5], [11, 1, 6], [12, 2, 5]],
                       edges: [edge(:author, InColumn.new(2), type: "people", to: people)])
      posts = draft("posts", { id: :integer, mine: :viewer }, [[1], [2]],
                    edges: [edge(:comments, Pairs.new(comments.rows, 1, 0), many: true, type: "comments", to: comments)])
      plan, row_set = build(posts)
      output, found = encoder.encode_part(row_set, Serialize::Template.new(plan))
      assert_equal write(posts).body[/\A{"data":\[(.*)\],"included"/, 1], output.body
      assert_equal write(posts).holes.each_slice(3).map { |offset, *hole| [offset - 9, *hole] }.flatten, output.holes
      assert_equal [2, "5", 1, "10", 2, "6", 1, "11", 1, "12"], found
    end

    def test_a_part_of_a_plan_without_included_records
      plan, row_set = build(draft("things", { id: :integer }, [[1], [2]]))
      output, found = encoder.encode_part(row_set, Serialize::Template.new(plan))
      assert_equal ['{"type":"things","id":"1"},{"type":"things","id":"2"}', []], [output.body, found]
    end

    def test_rails_writes_the_same_values
      WRITTEN[:float].each { |value, json| assert_equal ActiveSupport::JSON.encode(value.to_f), json }
      WRITTEN[:decimal].each { |value, json| assert_equal BigDecimal(value.to_s).to_s("F"), JSON.parse(json) }
    end

    WRITTEN = {
      integer: { 0 => "0", -1 => "-1", 42 => "42", "42" => "42", "-7" => "-7", 2**62 => (2**62).to_s, 2**80 => (2**80).to_s,
                 (2**80).to_s => (2**80).to_s, -(2**63) => (-(2**63)).to_s },
      text: { "" => '""', "a" => '"a"', :sym => '"sym"', 12 => '"12"', 1.5 => '"1.5"',
              "\u{1F3F0}" => "\"\u{1F3F0}\"", "a\u0000b" => '"a\u0000b"',
              "0123456\"89abcdef\\" => '"0123456\"89abcdef\\\\"' },
      boolean: { true => "true", 1 => "true", "t" => "true", "1" => "true", "true" => "true",
                 false => "false", 0 => "false", "f" => "false", "0" => "false", "false" => "false" },
      float: { 1.0 => "1.0", 0.1 => "0.1", -0.0 => "-0.0", 1e-4 => "0.0001", 1e15 => JSON.generate(1e15), 1e16 => JSON.generate(1e16),
               **[1e20, -1e22, 1e-5, 1e-7, 5e-324, 1.5e300, 1.7976931348623157e308].to_h { |value| [value, JSON.generate(value)] },
               3 => "3.0", "3" => "3.0", "0.1" => "0.1", "-0" => "-0.0", "1e+20" => JSON.generate(1e20), "0.00001" => JSON.generate(1e-5),
               "12345678901234567" => JSON.generate(12_345_678_901_234_567.0), "1.10" => "1.1", "100" => "100.0",
               "0.30000000000000004" => "0.30000000000000004", "1234567890123456" => JSON.generate(1_234_567_890_123_456.0),
               "123456789012345.5" => "123456789012345.5", "0.000" => "0.0", "0.0001" => "0.0001", "0.00012" => "0.00012",
               ".5" => "0.5", "007" => "7.0" },
      decimal: { "12.50" => '"12.5"', "12" => '"12.0"', "0.00" => '"0.0"', "-0.10" => '"-0.1"', 12 => '"12.0"', 12.5 => '"12.5"',
                 1e20 => '"100000000000000000000.0"', 1e-7 => '"0.0000001"', "1e-3" => '"0.001"', "1.5E+3" => '"1500.0"',
                 "123.456e1" => '"1234.56"',
                 "0001.1" => '"1.1"', "98765432109876543210.01234567890" => '"98765432109876543210.0123456789"', "-0" => '"-0.0"' },
      date: { "2024-01-31" => '"2024-01-31"', "2024-02-29 10:00:00" => '"2024-02-29"', "12024-01-31" => '"12024-01-31"',
              Time.utc(2024, 1, 31) => '"2024-01-31"' },
      datetime: { "2024-01-31 10:00:00" => '"2024-01-31T10:00:00.000Z"', "2024-01-31 10:00:00.1" => '"2024-01-31T10:00:00.100Z"',
                  "2024-01-31 10:00:00.123999" => '"2024-01-31T10:00:00.123Z"', "2024-01-31T10:00:00Z" => '"2024-01-31T10:00:00.000Z"',
                  "2024-01-31 10:00:00.12+00" => '"2024-01-31T10:00:00.120Z"', "2024-01-31 00:30:00.5+01" => '"2024-01-30T23:30:00.500Z"',
                  "2024-02-28 22:00:00-03:30" => '"2024-02-29T01:30:00.000Z"',
                  "1969-12-31 23:59:59-00:00:01" => '"1970-01-01T00:00:00.000Z"',
                  "2023-12-31 23:59:59-0100" => '"2024-01-01T00:59:59.000Z"', "2024-01-31" => '"2024-01-31T00:00:00.000Z"',
                  "2024-01-31 10:00:00 UTC" => '"2024-01-31T10:00:00.000Z"', "0001-01-01 00:00:00" => '"0001-01-01T00:00:00.000Z"',
                  "10000-01-01 00:00:00" => '"10000-01-01T00:00:00.000Z"', "10000-01-01 00:00:00+01" => '"9999-12-31T23:00:00.000Z"',
                  Time.at(1, 999_999, :usec).utc => '"1970-01-01T00:00:01.999Z"',
                  Time.new(2024, 1, 1, 0, 0, 0, "+02:00") => '"2023-12-31T22:00:00.000Z"' },
      json: { '{"a": 1}' => '{"a": 1}', "null" => "null", 1 => "1", 1.5 => "1.5", '"é"' => '"é"' }
    }.freeze

    REFUSED = {
      integer: ["", "1.5", "abc", "1 ", "01", "--1", 1.0, true, "1\n", "-"],
      text: [true, Object, [1]],
      boolean: ["yes", 2, "", 1.5, "T"],
      float: ["", "abc", "1.2.3", "1e", ".", true, "0x1p3", "1_000", Float::NAN, Float::INFINITY, "NaN", "Infinity", "-Infinity"],
      decimal: ["", ".", "abc", "NaN", "1,5", Float::NAN, true, "e5", "-"],
      date: ["", "infinity", "2024-13-01", "2023-02-29", "2024-1-1", "31.01.2024", "2024-01-31 x", "0044-03-15 BC", 20_240_131,
             "2024-01-31x"],
      datetime: ["", "infinity", "-infinity", "2024-01-31 24:00:00", "2024-01-31 10:60:00", "2024-02-30 10:00:00", "2024-01-31 10:00",
                 "0044-03-15 10:00:00 BC", 1_700_000_000, "2024-01-31 10:00:00 CET", "2024-01-31 10:00:00.",
                 "2100-02-29 00:00:00", "2024-01-31 10:00:00+"],
      json: ["", true, "\xff", Float::NAN]
    }.freeze

    private

    def write(root, **options) = encode(root, encoder:, **options)

    def data(root) = JSON.parse(write(root).body)["data"]

    def related(root, name) = data(root)[0]["relationships"][name]["data"]

    def included(root) = JSON.parse(write(root).body)["included"].map { |record| record.values_at("type", "id") }

    def value_of(coder, value, **options)
      body = write(draft("things", { id: :integer, value: coder }, [[1, value]]), **options).body
      body[/"value":(.*)\}\}\]\}\z/m, 1]
    end

    def users
      roles = draft("roles", { id: :integer, title: :text }, [[1, "admin"], [2, "\"keeper\""]])
      draft("users", { id: :integer, email: :text, age: :integer }, [[7, "ada@example.com", 36, "1,2", nil]],
            edges: [edge(:roles, InColumn.new(3), many: true, type: "roles", to: roles),
                    edge(:employee, InColumn.new(4), type: "employees")])
    end

    def fill(body, holes)
      bytes = body.b
      holes.reverse_each { |offset, index, id| bytes.insert(offset, yield(index, id)) }
      bytes.force_encoding(Encoding::UTF_8)
    end
  end
end
