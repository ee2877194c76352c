# frozen_string_literal: true

require "json"

module Castellan
  module Detect
    # Formats findings for a log, a response header, a failed test or GitHub.
    #
    #   Report.text(findings)     # => "2 findings\n  n_plus_one: 150 queries at …"
    #   Report.header(findings)   # => "n_plus_one 150 app/serializers/user_serializer.rb:14 User#employee, and 3 more"
    #   Report.json_lines(findings)
    #   Report.github(findings)   # => "::warning file=app/controllers/users_controller.rb,line=9::n_plus_one: …"
    module Report
      LONGEST_HEADER = 1_000

      class << self
        # @return [String] a line for each finding, followed by its source line
        def text(findings)
          lines = findings.flat_map { |one| ["  #{one}", *("    #{one.location}: #{one.source}" if one.source)] }
          [Figures.counted(findings.size, "finding"), *lines].join("\n")
        end

        # @return [String] visible ASCII of at most LONGEST_HEADER bytes; the rest of the findings is counted
        def header(findings)
          parts = findings.map { |finding| short(finding) }
          kept = parts.each_index.find { |index| parts[0..index].sum { |part| part.bytesize + 2 } > LONGEST_HEADER - 20 } || parts.size
          rest = parts.size - kept
          [*parts.first(kept), *("and #{rest} more" if rest.positive?)].join(", ")
        end

        # @param more [Hash] additional members, which come first in each object
        # @return [String] one JSON object per line
        def json_lines(findings, **more)
          findings.map { |finding| "#{JSON.generate({ **more, **finding.to_h.compact })}\n" }.join
        end

        # @return [String] workflow commands, with which GitHub annotates the lines to change
        def github(findings)
          findings.map do |finding|
            path, line = fix_site(finding).to_s.split(/:(?=\d+\z)/)
            place = path ? " file=#{property(path)},line=#{line}" : ""
            "::warning#{place}::#{escape(finding.to_s)}\n"
          end.join
        end

        # The line to change: the one that loads the records, or else the one that sends the queries. For a
        # scoped association, this is the line that reads it.
        # @return [String, nil] "path:line"
        def fix_site(finding) = finding.parent_location || finding.location

        # @param cached [Boolean] whether to include queries that the query cache answered
        # @return [Array<Finding>] the findings that fail an assertion
        def repetitions(findings, cached: false)
          findings.select { |finding| finding.repeats? || (cached && finding.kind == :cached_repeat) }
        end

        private

        def short(finding)
          text = [finding.kind, finding.count, finding.location, finding.association].compact.join(" ")
          text.encode(Encoding::US_ASCII, invalid: :replace, undef: :replace, replace: "?").gsub(/[^ -~]/, "?")
        end

        # The same escapes as in GitHub's toolkit (@actions/core).
        def escape(text) = text.gsub("%", "%25").gsub("\r", "%0D").gsub("\n", "%0A")

        def property(text) = escape(text).gsub(":", "%3A").gsub(",", "%2C")
      end
    end
  end
end
