# frozen_string_literal: true

require "yaml"

module Castellan
  module Detect
    # Reads a file of findings that a project accepts, with a reason for each.
    #
    #   # test/known_findings.yml
    #   - file: app/controllers/users_controller.rb
    #     association: User#employee
    #     reason: the export runs once a night
    #
    #   KnownFindings.of("test/known_findings.yml").new_among(findings)
    #   KnownFindings.entries(findings)   # => YAML entries for the file, with empty reasons
    #
    # An entry matches by the file of the line to change ({Report.fix_site}) and by the association, or else
    # by the fingerprint. Line numbers are not compared, so an entry survives edits of the file.
    class KnownFindings
      KEYS = %w[file association fingerprint reason].freeze

      # @param source [KnownFindings, String] an instance, or the path of a YAML file
      # @return [KnownFindings]
      # @raise [ConfigurationError] if the file is missing or not YAML, or if an entry is incomplete
      def self.of(source)
        source.is_a?(self) ? source : new(YAML.safe_load_file(source) || [], source)
      rescue Errno::ENOENT
        raise ConfigurationError, "#{source}: no such file of known findings; write one, or leave `known` out"
      rescue Psych::SyntaxError => error
        raise ConfigurationError, "#{source}: #{error.problem} in line #{error.line}"
      end

      # @param findings [Array<Finding>]
      # @return [String] YAML entries with empty reasons
      def self.entries(findings)
        entries = findings.map do |finding|
          cause = finding.association ? { "association" => finding.association } : { "fingerprint" => finding.fingerprint }
          YAML.dump([{ "file" => file(finding), **cause, "reason" => "" }]).delete_prefix("---\n")
        end
        entries.uniq.join
      end

      # @return [String] how to accept these findings, for the message of a failed test
      def self.advice(findings)
        "To accept them, add this with a reason to a YAML file, and pass the file as `known`:\n#{entries(findings)}"
      end

      # @return [String, nil] the file to change
      def self.file(finding) = Report.fix_site(finding)&.sub(/:\d+\z/, "")

      # @param entries [Array<Hash>]
      # @param source [String] the name of the list, for error messages
      def initialize(entries, source = "known findings")
        raise ConfigurationError, "#{source}: write a list of entries with file, association and reason" unless entries.is_a?(Array)

        @entries = entries.each_with_index.map { |entry, index| checked(entry, "#{source}, entry #{index + 1}") }.freeze
        freeze
      end

      # @return [Array<Finding>] findings without an entry
      def new_among(findings) = findings.reject { |finding| known?(finding) }

      # @return [Boolean] whether an entry accepts the finding
      def known?(finding)
        file = KnownFindings.file(finding)
        @entries.any? { |entry| entry["file"] == file && same_cause?(entry, finding) }
      end

      private

      def same_cause?(entry, finding)
        entry["association"] ? entry["association"] == finding.association : entry["fingerprint"] == finding.fingerprint
      end

      def checked(entry, place)
        raise ConfigurationError, "#{place}: write a list of entries with file, association and reason" unless entry.is_a?(Hash)

        unknown = entry.keys - KEYS
        raise ConfigurationError, "#{place}: #{unknown.first} is not known; write #{KEYS.join(", ")}" if unknown.any?
        raise ConfigurationError, "#{place}: give the file of the line to change" if entry["file"].to_s.empty?
        raise ConfigurationError, "#{place}: give the association or the fingerprint" unless entry["association"] || entry["fingerprint"]
        raise ConfigurationError, "#{place}: give the reason why you accept the finding" if entry["reason"].to_s.strip.empty?

        entry
      end
    end
  end
end
