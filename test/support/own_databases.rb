# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "castellan/doctor"

module Castellan
  # Limits the doctor to the databases that a test lists, instead of all databases of the process.
  #
  #   include Castellan::OwnDatabases
  #   def own_databases = [World::Base, World::DB]   # ActiveRecord classes, Sequel databases
  #
  # Otherwise a failed transaction in another database would end the transactions of the test.
  module OwnDatabases
    def own_databases = []

    def run
      Doctor::Sandbox.stub(:active_record, -> { of_active_record }) { Doctor::Sandbox.stub(:sequel, -> { of_sequel }) { super() } }
    end

    private

    def of_active_record
      own_databases.grep(Class).map { |base| Doctor::Sandbox::ActiveRecordDatabase.new(base.connection_pool) }
    end

    def of_sequel
      own_databases.grep_v(Class).map { |database| Doctor::Sandbox::SequelDatabase.new(database) }
    end
  end
end
