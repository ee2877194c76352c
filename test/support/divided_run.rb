# frozen_string_literal: true

require "digest"

module Castellan
  # Divides the tests among processes: each test class runs in the process that claims it first.
  #
  #   CASTELLAN_DIVIDED=/tmp/x ruby -Itest …   # an empty directory that all processes share
  #
  # Each process has its own servers. bin/test starts the processes.
  module DividedRun
    # Deleted from the environment, so that programs that a test starts do not take part in the run.
    DIRECTORY = ENV.delete("CASTELLAN_DIVIDED")
    # Each of these takes a minute or more. They start first, so that no process waits for one at the end.
    LONGEST = %w[RandomWritesTablesTest DemoCommandTest RandomWritesNotificationsTest RandomWritesReplicasTest DifferentialTest RailtieTest
                 RandomWritesNotifiedPartitionsTest RandomWritesPartitionsTest RailsApiTest].freeze

    # @return [Boolean] whether this process claimed the class first; all processes run anonymous classes
    def self.mine?(test_class, directory = DIRECTORY)
      return true if test_class.name.nil?

      Dir.mkdir(File.join(directory, Digest::SHA256.hexdigest(test_class.name))).zero?
    rescue Errno::EEXIST
      false
    end

    # @return [Array<Class>] the longest classes; empty after the first call
    def self.longest
      return [] if @begun

      @begun = true
      Minitest::Runnable.runnables.select { |test_class| LONGEST.include?(test_class.name) }
    end

    # (see Minitest::Runnable.run)
    def run(reporter, options = {})
      DividedRun.longest.each { |test_class| test_class.run(reporter, options) }
      super if DividedRun.mine?(self)
    end
  end
end

Minitest::Test.extend(Castellan::DividedRun) if Castellan::DividedRun::DIRECTORY
