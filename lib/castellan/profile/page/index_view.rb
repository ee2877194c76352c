# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Renders the list of the latest requests, with filters and a form to compare two.
      #
      #   IndexView.new(summaries, root: "/castellan", filter: { endpoint: nil, status: "4xx" }).to_s
      #   IndexView.new(…).rows   # only the table, which page.js polls
      class IndexView < View
        template "index_page", "latest", "endpoint_table", "evidence"

        CLASSES = %w[2xx 3xx 4xx 5xx].freeze
        MOST_ENDPOINTS = 8
        private_constant :CLASSES, :MOST_ENDPOINTS

        # A row of the table of endpoints.
        Endpoint = Struct.new(:name, :requests, :median_ns, :queries, :findings)

        # @param summaries [Array<ResultSummary>] newest first
        # @param endpoints [Array<String>] the options of the filter
        # @param filter [Hash] `endpoint` and `status` of the query string, or nil
        # @param limit [Integer] the most requests to list
        # @param evidence [Array<Finding>] findings of many requests
        def initialize(summaries, filter:, endpoints: [], limit: summaries.size + 1, evidence: [], **options)
          super(**options)
          @vain = evidence.map { |finding| FindingGroup.new([finding.to_h], []) }
          @limit = limit
          @summaries = summaries
          @endpoints = endpoints
          @filter = filter
        end

        def to_s = layout("Latest requests", index_page)

        # @return [String] the part of the page that page.js polls
        def rows = latest

        private

        attr_reader :summaries

        def filtered? = @filter.values.any?

        def cut? = summaries.size >= @limit

        def statuses
          listed = summaries.map(&:status).uniq
          [*CLASSES, *listed.compact.sort.map(&:to_s), ("none" if listed.include?(nil)), @filter[:status]].compact.uniq
        end

        def undisturbed = @undisturbed ||= undisturbed_of(summaries)

        # Times are compared among SQL profiles only, because memory and sampling profiles slow the request
        # down.
        def undisturbed_of(some) = some.select { |one| one.depth == "sql" }.then { |found| found.empty? ? some : found }

        def bar_of(one)
          return unless undisturbed.include?(one)

          bar(one.duration_ns, slowest_of_all.duration_ns, one.findings.to_i.positive? ? "finding" : "outside")
        end

        def slowest = (slowest_of_all if undisturbed.size > 1)

        def slowest_of_all = @slowest_of_all ||= undisturbed.max_by { |one| one.duration_ns.to_i }

        def by_endpoint
          summaries.group_by(&:endpoint).sort_by { |_, same| -same.sum(&:duration_ns) }.first(MOST_ENDPOINTS).map do |name, same|
            time = median(undisturbed_of(same).map(&:duration_ns))
            Endpoint.new(name, same.size, time, median(same.map(&:queries)), same.map(&:findings).max)
          end
        end

        def median(values) = values.sort[(values.size - 1) / 2]

        # Preselects the newest request and the previous one of its endpoint and status, else any other.
        def proposed
          @proposed ||= begin
            newest = undisturbed.first
            other = newest && (before(newest) || (summaries - [newest]).first)
            [other&.id, newest&.id]
          end
        end

        # In the card layout the label is "Findings", so the badge shows only data-count.
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
