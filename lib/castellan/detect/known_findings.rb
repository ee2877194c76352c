# frozen_string_literal: true

require "yaml"

module Castellan
  module Detect
    # Findings that somebody decided to live with, in a file beside the tests, each with its reason.
    #
    #   # test/known_findings.yml
    #   - file: app/controllers/users_controller.rb
    #     association: User#employee
    #     reason: the export runs once a night
    #
    #   KnownFindings.of("test/known_findings.yml").new_among(findings)
    #   KnownFindings.entries(findings)   # => the text to put into the file, but for the reasons
    #
    # Known by the file of the fix site (where the records are loaded, or else where the queries are caused) and by the association (or,
    # without one, by the fingerprint), not by the line, so that an edit above it changes nothing. An entry without a reason is refused.
    class KnownFindings
      KEYS = %w[file association fingerprint reason].freeze

      # @param source [KnownFindings, String] or the path of a file
      # @return [KnownFindings]
      def self.of(source)
        source.is_a?(self) ? source : new(YAML.safe_load_file(source) || [], source)
      rescue Errno::ENOENT
        raise ConfigurationError, "#{source}: no such file of known findings; write one, or leave `known` out"
      rescue Psych::SyntaxError => error
        raise ConfigurationError, "#{source}: #{error.problem} in line #{error.line}"
      end

      # @param findings [Array<Finding>]
      # @return [String] YAML; the reasons are left to whoever knows them
      def self.entries(findings)
        findings.map do |finding|
          cause = finding.association ? { "association" => finding.association } : { "fingerprint" => finding.fingerprint }
          YAML.dump([{ "file" => file(finding), **cause, "reason" => "" }]).delete_prefix("---\n")
        end.join
      end

      # @return [String] how to live with them, for the message of a test that failed
      def self.advice(findings)
        "To live with it, put this into a file of known findings, with a reason, and name the file as `known`:\n#{entries(findings)}"
      end

      # @return [String, nil] the file of the fix site
      def self.file(finding) = Report.fix_site(finding)&.sub(/:\d+\z/, "")

      # @param entries [Array<Hash>]
      # @param source [String] what to call them in an error
      def initialize(entries, source = "known findings")
        raise ConfigurationError, "#{source}: write a list of entries with file, association and reason" unless entries.is_a?(Array)

        @entries = entries.each_with_index.map { |entry, index| checked(entry, "#{source}, entry #{index + 1}") }.freeze
        freeze
      end

      # @return [Array<Finding>] those that are not known
      def new_among(findings) = findings.reject { |finding| known?(finding) }

      # @return [Boolean]
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
        raise ConfigurationError, "#{place}: #{unknown.first} is none of #{KEYS.join(", ")}" if unknown.any?
        raise ConfigurationError, "#{place}: give the file of the fix site" if entry["file"].to_s.empty?
        raise ConfigurationError, "#{place}: give the association or the fingerprint" unless entry["association"] || entry["fingerprint"]
        raise ConfigurationError, "#{place}: give the reason why it may stay" if entry["reason"].to_s.strip.empty?

        entry
      end
    end
  end
end
