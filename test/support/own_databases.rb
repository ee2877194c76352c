# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "castellan/doctor"

module Castellan
  # The doctor works with every database of its process; among the tests those are the databases of all of them, and a transaction of
  # one that has trouble would end the others. Here it meets only those that the test names.
  #
  #   include Castellan::OwnDatabases
  #   def own_databases = [World::Base, World::DB]   # classes of ActiveRecord with a connection, databases of Sequel; none by default
  module OwnDatabases
    def own_databases = []

    def run
      Doctor::Databases.stub(:active_record, -> { of_active_record }) { Doctor::Databases.stub(:sequel, -> { of_sequel }) { super() } }
    end

    private

    def of_active_record
      own_databases.grep(Class).map { |base| Doctor::Databases::ActiveRecordDatabase.new(base.connection_pool) }
    end

    def of_sequel
      own_databases.grep_v(Class).map { |database| Doctor::Databases::SequelDatabase.new(database) }
    end
  end
end
