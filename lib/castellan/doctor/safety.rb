# frozen_string_literal: true

module Castellan
  module Doctor
    # Keeps what a request would send into the world from leaving while the application is examined: jobs and mail. The process
    # belongs to the doctor and ends with it, so nothing is put back.
    #
    #   Safety.engage   # => ["jobs of ActiveJob are dropped", "mail is not delivered"]
    #
    # Held back where every class passes, also one that is loaded later or has an adapter of its own: `ActiveJob::Base.queue_adapter`,
    # `Mail::Message#deliver`, `Sidekiq::Client#raw_push`. Not for other queues, nor for HTTP requests that the application makes.
    module Safety
      # An ActiveJob adapter that drops every job.
      class DroppedJobs
        def enqueue(_job); end

        def enqueue_at(_job, _timestamp); end

        # @return [Integer] how many are said to be enqueued
        def enqueue_all(jobs) = jobs.size

        # @return [Boolean] whether to wait for the transaction: it never commits here
        def enqueue_after_transaction_commit? = false
      end

      # Prepended to the singleton class of ActiveJob::Base.
      module NoQueue
        JOBS = DroppedJobs.new
        private_constant :JOBS

        # @return [DroppedJobs]
        def queue_adapter = JOBS
      end

      # Prepended to Mail::Message, which also is what ActionMailer delivers.
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

      # @return [Array<String>] what was held back, in words
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

      # ActionMailer loads the mail gem when its Base is first named.
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
