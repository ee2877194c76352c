# frozen_string_literal: true

require_relative "../instrument"
require_relative "raw_statement"
require_relative "pg_instrument"
require_relative "sqlite3_instrument"

module Castellan
  module Instrument
    # Listens to statements that an application sends through pg or sqlite3 itself. Opt-in, because it prepends to the drivers'
    # classes:
    #
    #   require "castellan/instrument/drivers"
    #
    # Prepended at the first subscription. What ActiveRecord and Sequel send is counted once, by their own instruments.
    module Drivers
      ALL = [PgInstrument, Sqlite3Instrument].freeze

      class << self
        def attached? = ALL.any?(&:attached?)

        def attach
          ALL.each(&:attach)
          return unless defined?(ActiveSupport)

          require "active_support/lazy_load_hooks"
          ActiveSupport.on_load(:active_record, run_once: true) { RawStatement.prepend_lent }
        end

        def detach = ALL.each(&:detach)
      end
    end
  end
end

Castellan::Instrument.add(Castellan::Instrument::Drivers)
