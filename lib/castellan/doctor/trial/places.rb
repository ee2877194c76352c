# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Where a unit of work loaded records when it ran without a fix, so that a fix is applied there. A work that was written down
      # again, at other lines than the one that a finding is of, loads at other lines.
      #
      #   places = Places.new([["User", "app/models/report.rb:12"]])
      #   places.locate(finding)   # => the finding, or one of the line where such records were loaded; nil where there is no such line
      class Places
        # @param loads [Array<Array(String, String)>] names of models, and "path:line"
        def initialize(loads)
          @loads = loads.uniq
        end

        # @param finding [Finding] with a preload
        # @return [Finding, nil]
        def locate(finding)
          return finding if finding.parent_count.nil? || here?(finding) # what comes one by one is not told as a load

          elsewhere = @loads.select { |model, _location| related?(model, finding.parent_model) }.map(&:last).uniq
          Finding.new(**finding.to_h, parent_location: elsewhere.first, location: nil) if elsewhere.one?
        end

        private

        def here?(finding) = @loads.any? { |_model, location| location == finding.parent_location }

        def related?(one, other)
          one, other = [one, other].map { |name| Object.const_get(name) }
          one <= other || other <= one || false
        rescue NameError
          false
        end
      end
    end
  end
end
