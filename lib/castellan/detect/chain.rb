# frozen_string_literal: true

module Castellan
  module Detect
    # The conditions that a line of source puts on an association before it asks the database.
    #
    #   chain = Chain.read("object.authentication_tokens.where(on_behalf: false).last&.last_used_at", :authentication_tokens)
    #   chain.conditions   # => "where(on_behalf: false)"
    #   chain.finder       # => "last"
    #   chain.constant?    # => true: the same for every record, so an association can be declared with them
    #
    # Reads the source and not the statement, so that a finding holds what the developer wrote and no value of a query.
    # Takes what {WrittenCall} has put together of several lines.
    Chain = Struct.new(:calls, :finder, :arguments, :target, keyword_init: true) do
      # @param source [String, nil]
      # @param association [Symbol]
      # @param target [Class, nil] the model that the association leads to, whose named scopes are conditions as well
      # @return [Chain, nil] nil where the line does not show the association
      def self.read(source, association, target = nil)
        rest = source && source[/\b#{Regexp.escape(association.to_s)}(?:_dataset)?\b(.*)/m, 1] or return
        calls = []
        while (call = rest.match(Chain::CALL) || named(rest, target))
          calls << call.captures.join
          rest = call.post_match
        end
        finder = rest.match(Chain::FINDER)
        calls << chosen(*finder.captures, target) if finder && chooses?(*finder.captures)
        new(calls: calls.freeze, finder: finder && finder[1], arguments: finder && finder[2], target: target)
      end

      def self.named(rest, target)
        call = rest.match(Chain::FINDER)
        call if call && scope?(target, call[1])
      end
      private_class_method :named

      # @param target [Class, nil] a model
      # @return [Boolean] whether the model itself has such a scope, or class method, and not the library
      def self.scope?(target, name)
        return false unless target.is_a?(Class) && target.respond_to?(name)

        library = target.ancestors.find { |owner| Chain::LIBRARY.include?(owner.name) }
        !library.singleton_class.ancestors.include?(target.method(name).owner)
      end

      # Whether a finder is given conditions, and not a number or a column.
      def self.chooses?(name, arguments)
        return arguments.to_s.match?(/\A\(.*\S.*\)\z/m) if name == "exists?"

        name.match?(/\A(?:find_by|first|last|take|get|any\?)/) && arguments.to_s.match?(/\A\(\s*\w+:\s/)
      end
      private_class_method :chooses?

      # `exists?` takes a key as well.
      def self.chosen(name, arguments, target)
        key = key(name, arguments)
        key ? "where(#{Detect.models(target)&.primary_key(target) || "id"}: #{key})" : "where#{arguments}"
      end
      private_class_method :chosen

      # To `exists?` only a Hash and an Array are conditions.
      # @return [String, nil] what is given as a key
      def self.key(name, arguments)
        given = name == "exists?" && arguments.to_s[/\A\(\s*(.*\S)\s*\)\z/m, 1]
        given if given && !given.match?(Chain::CONDITIONS)
      end

      # @return [Boolean] whether the record is asked for by its key
      def keyed? = %w[find with_pk with_pk!].include?(finder) && !arguments.nil?

      # @return [String, nil] what is taken for the key of a record, but may hold a Hash of conditions
      def doubtful_key
        key = Chain.key(finder, arguments)
        key unless key.nil? || key.match?(Chain::KEY)
      end

      # @return [String] all of them
      def conditions = calls.join(".")

      # @return [String] those that choose, not those that sort
      def filters = unlimited.grep_v(/\A(?:(?:re)?order|reverse)/).join(".")

      # @return [Array<String>] all but the limit, which is one: see {#limited?}
      def unlimited = calls.grep_v(/\Alimit/)

      # @return [Boolean] whether more than one is taken of each, or another than the first or last: a preload would take
      #   them of all together
      def limited?
        calls.any? { |call| call.start_with?("limit") && call != "limit(1)" } ||
          (arguments.to_s.match?(/\A\(\d/) && finder != "exists?" && !keyed?) ||
          %w[second third fourth fifth forty_two second_to_last third_to_last offset].include?(finder)
      end

      # @return [Integer, nil] how many are taken of each
      def limit
        written = [*calls.grep(/\Alimit/), *("first#{arguments}" if finder == "first")].filter_map { |call| call[/\((\d+)\)\z/, 1] }
        Integer(written.first) if written.one?
      end

      # @return [Boolean] whether they are read in batches
      def batched? = %w[find_each find_in_batches in_batches paged_each].include?(finder)

      # @return [Boolean] whether the conditions are written with nothing but literals, and in a block with columns
      def constant?
        text = conditions.gsub(/"(?:[^"\\#]|\\.)*"|'[^']*'/, "0")
        text = text.gsub(Chain::BLOCK) { |block| block.gsub(/[a-z_]\w*/) { |name| column?(name) ? "" : name } }
        words = text.gsub(/\b\w+:(?!:)|:\w+|(?<![\w:])(?:#{Chain::SCOPES})\b|(?:\A|\.)\w+(?=\.|\z|\()/, "").scan(/[A-Za-z_@$]\w*/)
        (words - %w[true false nil Sequel desc asc]).empty?
      end

      private

      def column?(name) = Detect.models(target)&.column?(target, name)
    end
    Chain::LIBRARY = %w[ActiveRecord::Base Sequel::Model Object].freeze
    Chain::SCOPES = "where\\.(?:not|missing|associated)|where|not|order|reorder|rewhere|exclude|reverse_order|reverse|filter|limit"
    Chain::ARGUMENTS = /(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?/
    # A Hash or an Array, as it is written.
    Chain::CONDITIONS = /\A(?:[\[{]|\*\*|\w+:(?!:)|:\w+\s*=>|(?:"[^"]*"|'[^']*')\s*(?:=>|:))/
    # Is no Hash, by its name or its form.
    Chain::KEY = /\A(?:[^\s,]*(?:\b|_)id(?:["']?\])?|\d+|"[^"]*"|'[^']*'|.*\.(?:to_i|to_s|to_param))\z/
    # Sequel takes conditions as a block, where columns are names.
    Chain::BLOCK = /\s*\{[^{}|]*\}/
    Chain::CALL = /\A&?\.(#{Chain::SCOPES})#{Chain::ARGUMENTS}(#{Chain::BLOCK})?/
    Chain::FINDER = /\A&?\.(\w+[?!]?)#{Chain::ARGUMENTS}/
  end
end
