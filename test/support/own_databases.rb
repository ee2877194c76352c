# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "castellan/doctor"

module Castellan
  # Limits the doctor to the databases that a test names. It otherwise works with all databases of its
  # process, and a transaction of one that fails would end the others.
  #
  #   include Castellan::OwnDatabases
  #   def own_databases = [World::Base, World::DB]   # classes of ActiveRecord, databases of Sequel
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
