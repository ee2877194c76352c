# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Groups findings that share a fix, or that are the same in two requests.
      #
      #   group = FindingGroup.all(result.findings).first   # the group with the longest total time
      #   group.words    # => "the same query for each record (N+1)"
      #   group.count    # => 162
      #   group.indexes  # => [0, 2], positions in the findings of the result
      class FindingGroup
        WORDS = { "n_plus_one" => "the same query for each record (N+1)", "duplicate" => "the same statement again, values included",
                  "write_loop" => "writes one by one", "cached_repeat" => "answered by the query cache again and again",
                  "unused_eager_load" => "loaded eagerly and never read",
                  "slow_query" => "slow statements", "wide_join" => "a join that repeats its rows" }.freeze
        private_constant :WORDS

        # @return [Array<Integer>]
        attr_reader :indexes
        # @return [Array<Finding, Hash>]
        attr_reader :findings

        # @param findings [Array<Finding, Hash>] findings, or their `to_h`
        # @return [Array<FindingGroup>] the longest total time first; findings in each group, too
        def self.all(findings)
          pairs = findings.each_with_index.sort_by { |finding, index| [-finding[:total_ns].to_i, index] }
          groups = pairs.group_by { |finding, index| [finding[:kind].to_s, finding[:fix] || index] }.values
          groups.map { |same| new(*same.transpose) }.sort_by.with_index { |group, index| [-group.total_ns, index] }
        end

        # @param findings [Array<Finding, Hash>]
        # @return [Hash{Array => FindingGroup}] by kind, and association or fingerprint; lines are ignored
        def self.by_key(findings)
          groups = findings.each_with_index.group_by { |finding, _| [finding[:kind].to_s, finding[:association] || finding[:fingerprint]] }
          groups.transform_values { |pairs| new(*pairs.transpose) }
        end

        # @param findings [Array<Finding, Hash>]
        # @param indexes [Array<Integer>]
        def initialize(findings, indexes)
          @findings = findings
          @indexes = indexes
        end

        # @return [Finding, Hash]
        def first = @findings.first

        # @return [String] the kind in words
        def words = WORDS.fetch(first[:kind].to_s) { |kind| kind.tr("_", " ") }

        # @return [Boolean] see {Finding#repeats?}
        def repeats? = Finding.new(kind: first[:kind].to_sym).repeats?

        # @return [Boolean] whether the query cache answered, so that {#total_ns} is the most that the application spent
        def cached? = first[:kind].to_s == "cached_repeat"

        # @return [Integer] the number of statements
        def count = @findings.sum { |finding| finding[:count].to_i }

        # @return [Integer]
        def total_ns = @findings.sum { |finding| finding[:total_ns].to_i }

        # @return [String, nil]
        def fix = first[:fix]

        # @return [String, nil] the source code of the line
        def source = first[:source]

        # @return [String, nil] why there is no fix
        def fix_refused = first[:fix_refused]

        # @return [String, nil] "User#employee"; several associations: "User#employee, #roles; Role#group"
        def association
          names = @findings.filter_map { |finding| finding[:association] }.uniq
          models = names.group_by { |name| name[/\A[^#]+/] }
          models.map { |model, same| "#{model}#{same.map { |name| name.delete_prefix(model) }.join(", ")}" }.join("; ") if names.any?
        end

        # @return [Array<(Integer, String)>] the number of parent records, or nil, and the line that loaded
        #   them
        def loaded
          @findings.select { |one| one[:parent_location] }.map { |one| [one[:parent_count], one[:parent_location]] }.uniq
        end

        # @return [Hash{String => Array<Finding, Hash>}] the findings by call site
        def places = @findings.group_by { |finding| finding[:location] || "an unknown place" }
      end
    end
  end
end
