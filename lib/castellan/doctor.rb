# frozen_string_literal: true

# Boots an application, measures one request, and reports what is slow and why.
#
#   application = Castellan::Doctor::Application.boot("config.ru", environment: "production")
#   request = Castellan::Doctor::RackRequest.new("/users", headers: { "Authorization" => "Bearer …" })
#   examination = Castellan::Doctor::Examination.new(application, request).call
#   examination.measurement.queries   # => 1139
#   examination.findings.first.fix    # => "add .preload(:employee) …"
#
#   Castellan::Doctor.try(finding) { get("/users") }   # => Trial: the same work with the finding's fix
#
# Boots the application in this process, so run the doctor in a process of its own; `try` boots nothing. Do
# not examine requests that write.
require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "figures"
require_relative "public_url"

module Castellan
  module Doctor
    # Raised if the application does not boot or a response is not successful.
    # The message gives the reason and the next step.
    class Error < Castellan::Error; end

    # Runs the block again with the fixes applied in memory, and measures whether they help.
    #
    #   findings = Castellan::Detect.watch { get("/users") }
    #   Castellan::Doctor.try(findings.first) { get("/users") }.to_s   # => "151 → 2 queries, …"
    #
    # Changes no file, rolls back every run, and restores all relations and models. Writes outside of the
    # database (to a cache, a queue, another server) happen in every run. Compares the results of the block: a
    # response, its body, or plain values and models.
    # @param findings [Array<Finding>] findings of {Detect.watch} that share a fix
    # @yield the work that the findings are about; if it sends requests, only GET or HEAD
    # @return [Trial]
    # @raise [ArgumentError] without a finding or a block
    def self.try(*findings, &work)
      findings = findings.flatten.compact
      raise ArgumentError, "give a finding: Castellan::Doctor.try(finding) { the work }" if findings.empty?
      raise ArgumentError, "give the work that the finding is of: Castellan::Doctor.try(finding) { the work }" unless work

      Trial::Experiment.new(findings, &work).call
    end
  end
end

require_relative "doctor/standard_output"
require_relative "doctor/progress"
require_relative "doctor/application"
require_relative "doctor/rack_request"
require_relative "doctor/curl_command"
require_relative "doctor/sandbox"
require_relative "doctor/table_comparison"
require_relative "doctor/safety"
require_relative "doctor/memory"
require_relative "doctor/answer"
require_relative "doctor/refusal"
require_relative "doctor/outcome"
require_relative "doctor/measured_run"
require_relative "doctor/examination"
require_relative "doctor/trial"
require_relative "doctor/trial/injection"
require_relative "doctor/trial/active_record_injection"
require_relative "doctor/trial/sequel_injection"
require_relative "doctor/trial/experiment"
require_relative "doctor/trials"
require_relative "doctor/diagnosis"
