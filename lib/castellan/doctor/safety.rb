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
      class DroppedJobs
        def enqueue(_job); end

        def enqueue_at(_job, _timestamp); end

        # @return [Integer] number of jobs, as if they were enqueued
        def enqueue_all(jobs) = jobs.size

        # @return [Boolean] false: the transaction never commits here
        def enqueue_after_transaction_commit? = false
      end

      # Prepended to the singleton class of ActiveJob::Base.
      module NoQueue
        JOBS = DroppedJobs.new
        private_constant :JOBS

        # @return [DroppedJobs]
        def queue_adapter = JOBS
      end

      # Prepended to Mail::Message, which ActionMailer delivers, too.
      module NoDelivery
        # @return [self]
        def deliver = self

        # @return [self]
        def deliver! = self
      end

      # Prepended to Sidekiq::Client.
      module NoPush
        # @return [true]
        def raw_push(_payloads) = true
      end

      module_function

      # @return [Array<String>] sentences about what is dropped
      def engage
        [active_job, mail, sidekiq].compact
      end

      def active_job
        return unless defined?(ActiveJob::Base)

        ActiveJob::Base.singleton_class.prepend(NoQueue)
        "jobs of ActiveJob are dropped"
      end

      def mail
        load_mailer
        return unless defined?(Mail::Message)

        Mail::Message.prepend(NoDelivery)
        "mail is not delivered"
      end

      # Referencing ActionMailer::Base loads the mail gem.
      def load_mailer
        defined?(ActionMailer::Base) && ActionMailer::Base
      end

      def sidekiq
        return unless defined?(Sidekiq::Client)

        Sidekiq::Client.prepend(NoPush)
        "jobs of Sidekiq are dropped"
      end
    end
  end
end
