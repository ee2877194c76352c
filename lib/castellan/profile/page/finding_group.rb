# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Groups findings that share a fix, or that are the same in two requests.
      #
      #   group = FindingGroup.all(result.findings).first   # the longest total time
      #   group.words    # => "the same query for each record (N+1)"
      #   group.count    # => 162
      #   group.indexes  # => [0, 2], indexes into the result's findings
      class FindingGroup
        WORDS = { "n_plus_one" => "the same query for each record (N+1)", "duplicate" => "the same statement again, values included",
                  "write_loop" => "writes one by one", "cached_repeat" => "answered by the query cache again and again",
                  "unused_eager_load" => "loaded eagerly and never read",
                  "slow_query" => "slow statements", "wide_join" => "a join that repeats its rows" }.freeze
        private_constant :WORDS

        # @param kind [Symbol, String] of a {Finding}
        # @return [String] readable name of the kind
        def self.words(kind) = WORDS.fetch(kind.to_s) { kind.to_s.tr("_", " ") }

        # @return [Array<Integer>]
        attr_reader :indexes
        # @return [Array<Hash>] each as `Finding#to_h`
        attr_reader :findings

        # @param findings [Array<Hash>]
        # @return [Array<FindingGroup>]
        def self.all(findings)
          groups = findings.each_with_index.group_by { |finding, index| [finding[:kind].to_s, finding[:fix] || index] }
          groups.each_value.map { |pairs| new(*pairs.transpose) }.sort_by { |group| -group.total_ns }
        end

        # @param findings [Array<Hash>]
        # @return [Hash{Array => FindingGroup}] by kind and association or fingerprint, which stay equal when
        #   lines move
        def self.by_key(findings)
          groups = findings.each_with_index.group_by { |finding, _| [finding[:kind].to_s, finding[:association] || finding[:fingerprint]] }
          groups.transform_values { |pairs| new(*pairs.transpose) }
        end

        # @param findings [Array<Hash>]
        # @param indexes [Array<Integer>]
        def initialize(findings, indexes)
          @findings = findings
          @indexes = indexes
        end

        # @return [String]
        def words = self.class.words(kind)

        # @return [String]
        def kind = first[:kind].to_s

        # @return [Boolean] see {Finding#repeats?}
        def repeats? = Finding.new(kind: kind.to_sym).repeats?

        # @return [Integer] number of statements
        def count = @findings.sum { |finding| finding[:count].to_i }

        # @return [Integer]
        def total_ns = @findings.sum { |finding| finding[:total_ns].to_i }

        # @return [String, nil]
        def fix = first[:fix]

        # @return [String, nil] source code of the line
        def source = first[:source]

        # @return [String, nil] reason why there is no fix
        def fix_refused = first[:fix_refused]

        # @return [String, nil] "User#employee"; several associations: "User#employee, #roles; Role#group"
        def association
          names = @findings.filter_map { |finding| finding[:association] }.uniq
          models = names.group_by { |name| name[/\A[^#]+/] }
          models.map { |model, same| "#{model}#{same.map { |name| name.delete_prefix(model) }.join(", ")}" }.join("; ") if names.any?
        end

        # @return [Array<(Integer, String)>] number of parent records, or nil, and the call site that loaded
        #   them
        def loaded
          @findings.filter_map { |finding| finding.values_at(:parent_count, :parent_location) if finding[:parent_location] }.uniq
        end

        # @return [Hash{String => Array<Hash>}] findings by call site
        def places = @findings.group_by { |finding| finding[:location] || "an unknown place" }

        private

        def first = @findings.first
      end
    end
  end
end
