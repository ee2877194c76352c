# frozen_string_literal: true

require "digest"

module Castellan
  # Lets several processes run the tests between them: each class of tests is run by the one that comes to it first, with servers of its
  # own. bin/test starts a few of them.
  #
  #   CASTELLAN_DIVIDED=/tmp/x ruby -Itest …   # a directory that is empty at first, the same one for all of them
  module DividedRun
    # Taken away, because programs that a test starts are no part of the run.
    DIRECTORY = ENV.delete("CASTELLAN_DIVIDED")
    # Each takes a minute or more. They are begun first, so that the other processes do not wait for one at the end.
    LONGEST = %w[DemoCommandTest RailsApiTest DetectUsersExampleTest].freeze

    # @return [Boolean] whether this process came first; a class without a name is run by all
    def self.mine?(test_class, directory = DIRECTORY)
      return true if test_class.name.nil?

      Dir.mkdir(File.join(directory, Digest::SHA256.hexdigest(test_class.name))).zero?
    rescue Errno::EEXIST
      false
    end

    # @return [Array<Class>] the longest, at the first call; none afterwards
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
