# frozen_string_literal: true

require "json"

module Castellan
  module Detect
    # Findings as text: for a log, a response header, a failed test, a machine. Pure functions.
    #
    #   Report.text(findings)     # => "2 findings\n  n_plus_one: 150 queries at …"
    #   Report.header(findings)   # => "n_plus_one 150 app/serializers/user_serializer.rb:14 User#employee, and 3 more"
    #   Report.json_lines(findings)
    #   Report.github(findings)   # => "::warning file=app/controllers/users_controller.rb,line=9::n_plus_one: …"
    module Report
      LONGEST_HEADER = 1_000

      module_function

      # @return [String] a line for each finding, and what to change below it
      def text(findings)
        [count(findings), *findings.map { |finding| "  #{paragraph(finding)}" }].join("\n")
      end

      # @return [String] visible ASCII and no longer than LONGEST_HEADER bytes; what has no room is counted
      def header(findings)
        parts = findings.map { |finding| short(finding) }
        kept = parts.each_index.find { |index| parts[0..index].sum { |part| part.bytesize + 2 } > LONGEST_HEADER - 20 } || parts.size
        rest = parts.size - kept
        [*parts.first(kept), *("and #{rest} more" if rest.positive?)].join(", ")
      end

      # @param more [Hash] what else each line should say, first
      # @return [String] a JSON object a line
      def json_lines(findings, **more)
        findings.map { |finding| "#{JSON.generate({ **more, **finding.to_h.compact })}\n" }.join
      end

      # @return [String] workflow commands that GitHub shows beside the line to change
      def github(findings)
        findings.map do |finding|
          path, line = fix_site(finding).to_s.split(/:(?=\d+\z)/)
          place = path ? " file=#{property(path)},line=#{line}" : ""
          "::warning#{place}::#{escape(finding.to_s)}\n"
        end.join
      end

      # Where the change belongs: where the records are loaded, or else where the queries are caused. A scoped association is declared
      # elsewhere, but read there.
      # @return [String, nil] "path:line"
      def fix_site(finding) = finding.parent_location || finding.location

      def count(findings) = findings.size == 1 ? "1 finding" : "#{findings.size} findings"
      private_class_method :count

      def paragraph(finding)
        [finding.to_s, finding.source && "    #{finding.location}: #{finding.source}"].compact.join("\n")
      end
      private_class_method :paragraph

      def short(finding)
        text = [finding.kind, finding.count, finding.location, finding.association].compact.join(" ")
        text.encode(Encoding::US_ASCII, invalid: :replace, undef: :replace, replace: "?").gsub(/[^ -~]/, "?")
      end
      private_class_method :short

      # As GitHub's own toolkit escapes the text of a command.
      def escape(text) = text.gsub("%", "%25").gsub("\r", "%0D").gsub("\n", "%0A")
      private_class_method :escape

      def property(text) = escape(text).gsub(":", "%3A").gsub(",", "%2C")
      private_class_method :property
    end
  end
end
