# frozen_string_literal: true

module Benchmarks
  # Holds the figures of a run, by work and database.
  #
  #   measured.paired(:users, "SQLite").ms("Castellan")   # => 9.1
  class Measured
    # @return [Hash{String => Array<Hash>}] by database, see {Growth.measure}
    # @return [Hash{String => Array<Hash>}] by database, see {Streamed.measure}
    # @return [Integer] the number of users in the list
    # @return [Array<Work>]
    attr_reader :growth, :streamed, :users, :works

    Work = Struct.new(:key, :database, :title, :bytes, :paired)

    def initialize(users:)
      @users = users
      @works = []
      @growth = {}
      @streamed = {}
    end

    # @return [Paired, nil]
    def paired(key, database)
      work(key, database)&.paired
    end

    # @return [String]
    def title(key, database)
      work(key, database).title.delete_suffix(", from the database")
    end

    private

    def work(key, database)
      works.find { |work| work.key == key && work.database == database }
    end
  end
end
