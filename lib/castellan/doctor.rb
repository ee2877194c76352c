# frozen_string_literal: true

# Examines an application: boots it, measures one request, and says what is slow there and why.
#
#   application = Castellan::Doctor::Application.boot("config.ru", environment: "production")
#   request = Castellan::Doctor::Request.new("/users", headers: { "Authorization" => "Bearer …" })
#   examination = Castellan::Doctor::Examination.new(application, request).call
#   examination.measurement.queries   # => 1139
#   examination.findings.first.fix    # => "add .preload(:employee) …"
#
#   Castellan::Doctor.try(finding) { get("/users") }   # => Trial: the same work with the finding's fix
#
# Boots the application into the process that asks, so it belongs into one of its own (`try` needs no boot). Not for requests that
# write.
require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "public_url"
require_relative "doctor/error"
require_relative "doctor/output"
require_relative "doctor/application"
require_relative "doctor/request"
require_relative "doctor/curl"
require_relative "doctor/databases"
require_relative "doctor/table_comparison"
require_relative "doctor/safety"
require_relative "doctor/memory"
require_relative "doctor/answer"
require_relative "doctor/refusal"
require_relative "doctor/progress"
require_relative "doctor/examination"
require_relative "doctor/figures"
require_relative "doctor/trial"
require_relative "doctor/trial/plain"
require_relative "doctor/trial/outcome"
require_relative "doctor/trial/run"
require_relative "doctor/trial/injection"
require_relative "doctor/trial/active_record_injection"
require_relative "doctor/trial/sequel_injection"
require_relative "doctor/trial/experiment"
require_relative "doctor/finding_group"
require_relative "doctor/trials"
require_relative "doctor/advice"
require_relative "doctor/report"

module Castellan
  module Doctor
    # Runs work again with the fix of findings applied in memory, and says whether it helps. No file is touched, every run is in a
    # transaction that is rolled back, and nothing stays on a relation or a model.
    #
    #   findings = Castellan::Detect.watch { get("/users") }
    #   Castellan::Doctor.try(findings.first) { get("/users") }.to_s   # => "151 → 2 queries, …; the answer is the same"
    #
    # Work that writes elsewhere (a cache, a queue, another server) does so at every run. What it returns is compared: a response,
    # its body, or plain values and models.
    # @param findings [Array<Finding>] what one change mends, from {Detect.watch}
    # @yield the work that the findings are of; of requests only GET and HEAD
    # @return [Trial]
    def self.try(*findings, &work)
      findings = findings.flatten.compact
      raise ArgumentError, "give a finding: Castellan::Doctor.try(finding) { the work }" if findings.empty?
      raise ArgumentError, "give the work that the finding is of: Castellan::Doctor.try(finding) { the work }" unless work

      Trial::Experiment.new(findings, &work).call
    end
  end
end
