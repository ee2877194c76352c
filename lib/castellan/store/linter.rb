# frozen_string_literal: true

require "securerandom"

module Castellan
  module Store
    # Checks that an object implements the {Store} interface, for test suites of custom stores.
    #
    #   Linter.new(MyStore.new).call      # raises ConfigurationError with every defect
    #   Linter.new(MyStore.new).defects   # => ["MyStore#read_multi - returns nil, not a Hash"]
    #
    # Writes and deletes keys with the prefix "castellan-lint-". Does not detect race conditions or unlimited
    # growth.
    class Linter
      BYTES = (0..255).to_a.pack("C*").freeze

      # @param store [Object]
      def initialize(store)
        @store = store
        @prefix = "castellan-lint-#{SecureRandom.hex(6)}-"
        @keys = []
        @defects = []
      end

      # @raise [ConfigurationError] with all defects
      # @return [Object] the store
      def call
        return @store if defects.empty?

        raise ConfigurationError, "not a store:\n#{@defects.join("\n")}"
      end

      # @return [Array<String>] lines of "Class#method - defect"; empty if there are none
      def defects
        @defects.clear
        METHODS.each do |name|
          note(name, "is missing") unless @store.respond_to?(name)
        end
        lint if @defects.empty?
        @defects
      end

      private

      def lint
        lint_writing
        lint_reading
        lint_keys
        lint_deleting
        lint_lease if ask(:supports?, :lease)
        lint_counter
      ensure
        cleanup
      end

      def lint_writing
        @keeps = false
        written = ask(:write_multi, { key("a") => BYTES, key("b") => "" }, ttl: 60)
        return note(:write_multi, "returns #{written.inspect}, not an Array of the written keys") unless written.is_a?(Array)

        @keeps = written.include?(key("a"))
        note(:write_multi, "with if_absent: true, names a key that was there") if keeps? && absent_write(key("a")).any?
      end

      def absent_write(name)
        Array(ask(:write_multi, { name => "other" }, ttl: 60, if_absent: true))
      end

      def lint_reading
        note(:read_multi, "of no keys is #{shown(ask(:read_multi, []))}, not {}") unless ask(:read_multi, []) == {}
        found = ask(:read_multi, [key("a"), key("none"), key("b")])
        return note(:read_multi, "returns #{shown(found)}, not a Hash") unless found.is_a?(Hash)

        note(:read_multi, "names a key that is not there, #{key('none').inspect}") if found.key?(key("none"))
        lint_bytes(found) if keeps?
      end

      def lint_bytes(found)
        bytes = found[key("a")]
        note(:read_multi, "returns #{shown(bytes)} for the 256 bytes that were written") unless bytes == BYTES
        note(:read_multi, "returns #{bytes.encoding}, not binary") if bytes.is_a?(String) && bytes.encoding != Encoding::BINARY
        note(:read_multi, "returns #{shown(found[key('b')])} for an empty value") unless found[key("b")] == ""
      end

      def lint_keys
        return unless keeps?

        ["x" * 300, "two words\r\n", "\xFF\x00".b].each do |odd|
          name = key(odd)
          ask(:write_multi, { name => "odd" }, ttl: 60)
          note(:read_multi, "does not find the key #{shown(name)}") unless ask(:read_multi, [name])&.fetch(name, nil) == "odd"
        end
      end

      def lint_deleting
        ask(:delete_multi, [key("b"), key("none")])
        note(:delete_multi, "leaves the value") if read(key("b"))
        note(:compare_and_delete, "deletes what is not there") if ask(:compare_and_delete, key("none"), "x")
        return unless keeps?

        note(:compare_and_delete, "deletes another's value") if ask(:compare_and_delete, key("a"), "x") || read(key("a")).nil?
        note(:compare_and_delete, "does not delete its own") if !ask(:compare_and_delete, key("a"), BYTES) || read(key("a"))
      end

      def lint_lease
        taken = [absent_write(key("lease")), absent_write(key("lease"))]
        note(:write_multi, "supports leases, but of two writes with if_absent: true not exactly one succeeds") \
          unless taken == [[key("lease")], []]
      end

      def lint_counter
        counts = [ask(:increment, key("count")), ask(:increment, key("count"), 2, ttl: 60)]
        wanted = keeps? ? [1, 3] : [1, 2]
        note(:increment, "counts #{counts.inspect}, not #{wanted.inspect}") unless counts == wanted
        note(:read_multi, "does not read the counter as \"3\"") if keeps? && read(key("count")) != "3"
      end

      def cleanup
        ask(:delete_multi, @keys)
      end

      def ask(name, ...)
        @store.public_send(name, ...)
      rescue StandardError => error
        note(name, "raises #{error.class}: #{error.message}")
        nil
      end

      def read(name)
        ask(:read_multi, [name])&.fetch(name, nil)
      end

      def key(name)
        (@prefix.b + name.b).tap { |key| @keys |= [key] }
      end

      def keeps?
        @keeps
      end

      def shown(value)
        value.inspect[0, 60]
      end

      def note(name, text)
        @defects |= ["#{@store.class}##{name} - #{text}"]
      end
    end
  end
end
