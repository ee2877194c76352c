# frozen_string_literal: true

require "json"

module Benchmarks
  # Compares two documents as parsed JSON, ignoring the order of `included`.
  #
  #   SameDocuments.difference('{"a":[1]}', '{"a":[2]}')   # => "a/0: 1 and 2"
  #   SameDocuments.difference('{"a":1}', '{"a":1}')       # => nil
  #
  # Everything else must be equal, including the order of lists.
  module SameDocuments
    module_function

    # @return [String, nil] the path of the first difference, and both values
    def difference(one, other)
      differing([], parsed(one), parsed(other))
    end

    # @param ways [Array<Way>]
    # @return [Hash{String => Integer}] the bytes of the document of each way
    # @raise [SystemExit] at the first difference
    def check(work, ways)
      bodies = ways.select(&:document).to_h { |way| [way, way.call] }
      bodies.keys.group_by(&:document).each_value do |first, *others|
        others.each { |way| compare(work, first, way, bodies) }
      end
      bodies.to_h { |way, body| [way.name, body.bytesize] }
    end

    def compare(work, first, way, bodies)
      found = difference(bodies[first], bodies[way])
      abort "#{work}: #{first.name} and #{way.name} do not answer the same document. #{found}" if found
    end

    def parsed(json)
      document = JSON.parse(json)
      return document unless document.is_a?(Hash) && document["included"]

      document.merge("included" => document["included"].to_h { |object| [object.values_at("type", "id").join("/"), object] })
    end

    def differing(path, one, other)
      return if one == other
      return in_hash(path, one, other) if one.is_a?(Hash) && other.is_a?(Hash)
      return in_list(path, one, other) if one.is_a?(Array) && other.is_a?(Array)

      "#{path.join("/")}: #{one.inspect[0, 80]} and #{other.inspect[0, 80]}"
    end

    def in_hash(path, one, other)
      (one.keys | other.keys).each do |key|
        return "#{[*path, key].join("/")}: only one of them has it" unless one.key?(key) && other.key?(key)

        found = differing([*path, key], one[key], other[key])
        return found if found
      end
      nil
    end

    def in_list(path, one, other)
      return "#{path.join("/")}: #{one.size} and #{other.size} items" unless one.size == other.size

      one.each_index.filter_map { |index| differing([*path, index], one[index], other[index]) }.first
    end
    private_class_method :compare, :parsed, :differing, :in_hash, :in_list
  end
end
