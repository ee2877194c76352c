# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # The latest requests, and what can be filtered and compared.
      #
      #   IndexView.new(summaries, root: "/castellan", endpoints: results.endpoints, filter: { endpoint: nil, status: "4xx" }).to_s
      #   IndexView.new(…).rows   # the table alone, which page.js asks for again and again
      class IndexView < View
        template "index_page", "latest", "endpoint_table", "evidence"

        CLASSES = %w[2xx 3xx 4xx 5xx].freeze
        MOST_ENDPOINTS = 8
        private_constant :CLASSES, :MOST_ENDPOINTS

        # One line of the table of endpoints.
        Endpoint = Struct.new(:name, :requests, :median_ns, :queries, :findings)

        # @param summaries [Array<Summary>] the newest first
        # @param endpoints [Array<String>] to choose from
        # @param filter [Hash] `endpoint` and `status` as they were asked for, or nil
        # @param limit [Integer] how many are listed at most
        # @param evidence [Array<Finding>] of many requests
        def initialize(summaries, filter:, endpoints: [], limit: summaries.size + 1, evidence: [], **options)
          super(**options)
          @vain = evidence.map { |finding| FindingGroup.new([finding.to_h], []) }
          @limit = limit
          @summaries = summaries
          @endpoints = endpoints
          @filter = filter
        end

        # @return [String] what changes as requests come in
        def rows = latest

        private

        attr_reader :summaries

        def title = "Latest requests"

        def content = index_page

        def filtered? = @filter.values.any?

        def cut? = summaries.size >= @limit

        # To choose from: classes of statuses, those that are listed, and the one that was asked for.
        def statuses
          listed = summaries.map(&:status).uniq
          [*CLASSES, *listed.compact.sort.map(&:to_s), ("none" if listed.include?(nil)), @filter[:status]].compact.uniq
        end

        # Memory and samples make a request slow, so what was profiled deeper says nothing of what is slow.
        def undisturbed
          @undisturbed ||= summaries.select { |one| one.depth == "sql" }.then { |found| found.empty? ? summaries : found }
        end

        def bar_of(one)
          return unless undisturbed.include?(one)

          bar(one.duration_ns, slowest_of_all.duration_ns, one.findings.to_i.positive? ? "finding" : "outside")
        end

        def slowest = (slowest_of_all if undisturbed.size > 1)

        def slowest_of_all = @slowest_of_all ||= undisturbed.max_by { |one| one.duration_ns.to_i }

        # What takes most time in all comes first.
        def by_endpoint
          summaries.group_by(&:endpoint).sort_by { |_, same| -same.sum(&:duration_ns) }.first(MOST_ENDPOINTS).map do |name, same|
            Endpoint.new(name, same.size, median(same.map(&:duration_ns)), median(same.map(&:queries)), same.map(&:findings).max)
          end
        end

        def median(values) = values.sort[(values.size - 1) / 2]

        # The newest and the previous one of its endpoint and status, else any two.
        def proposed
          @proposed ||= begin
            newest = undisturbed.first
            other = newest && (before(newest) || (summaries - [newest]).first)
            [other&.id, newest&.id]
          end
        end

        # Where a request is a card, "Findings" stands beside it, and the number is enough.
        def findings_badge(number)
          tag(:span, counted(number, "finding"), class: "badge bad found-count", data_count: count(number))
        end

        def before(one) = previous(one, summaries.drop(summaries.index(one) + 1))

        def compare_link(one)
          other = before(one) or return
          said = "#{other.endpoint || other.path}, #{duration(other.duration_ns)}, #{counted(other.queries, "query")}"
          tag(:a, "compare with previous", href: url("/compare", a: other.id, b: one.id), title: said, class: "step")
        end

        def radio(side, id)
          text = side == "a" ? "before" : "after"
          input = tag(:input, type: "radio", name: side, value: id, checked: proposed[side == "a" ? 0 : 1] == id)
          tag(:label, Markup.new("#{input}#{tag(:span, text)}"), class: "pick")
        end

        def option(value, text, chosen) = tag(:option, text, value: value, selected: chosen.to_s == value)
      end
    end
  end
end
