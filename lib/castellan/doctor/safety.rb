# frozen_string_literal: true

module Castellan
  module Doctor
    # Drops jobs and mail while the application is examined, until the process ends.
    #
    #   Safety.engage   # => ["jobs of ActiveJob are dropped", "mail is not delivered"]
    #
    # Patches methods that every class calls, also those loaded later or with an adapter of their own:
    # `ActiveJob::Base.queue_adapter`, `Mail::Message#deliver`, `Sidekiq::Client#raw_push`. Other queues and
    # HTTP requests of the application are not blocked.
    module Safety
      # An ActiveJob adapter that drops every job.
      module DroppedJobs
        module_function

        def enqueue(_job); end
        def enqueue_at(_job, _timestamp); end

        # @return [Integer] number of jobs, as if they were enqueued
        def enqueue_all(jobs) = jobs.size

        # @return [Boolean] false: the transaction never commits here
        def enqueue_after_transaction_commit? = false
      end

      # Prepended to the singleton class of ActiveJob::Base.
      NO_QUEUE = Module.new { define_method(:queue_adapter) { DroppedJobs } }
      # Prepended to Mail::Message, which ActionMailer delivers, too.
      NO_DELIVERY = Module.new { %i[deliver deliver!].each { |name| define_method(name) { self } } }
      # Prepended to Sidekiq::Client.
      NO_PUSH = Module.new { define_method(:raw_push) { |_payloads| true } }
      private_constant :NO_QUEUE, :NO_DELIVERY, :NO_PUSH

      # @return [Array<String>] sentences about what is dropped
      def self.engage
        Object.const_get("ActionMailer::Base") if defined?(ActionMailer::Base) # loads the mail gem
        targets = [
          [(ActiveJob::Base.singleton_class if defined?(ActiveJob::Base)), NO_QUEUE, "jobs of ActiveJob are dropped"],
          [(Mail::Message if defined?(Mail::Message)), NO_DELIVERY, "mail is not delivered"],
          [(Sidekiq::Client if defined?(Sidekiq::Client)), NO_PUSH, "jobs of Sidekiq are dropped"]
        ]
        targets.filter_map { |target, patch, text| target.prepend(patch) && text if target }
      end
    end
  end
end
