# frozen_string_literal: true

require "pg"

module Benchmarks
  # Runs only the SELECTs of a plan: prepared once, on the driver, with the ids that the plan binds.
  #
  #   raw = RawStatements.of { UserResource.render }   # runs it once to record the SELECTs
  #   raw.call                                         # sends them again
  #   raw.size                                         # => 5
  #
  # Nothing that reads these rows with these SELECTs can be faster.
  class RawStatements
    # @yield must render a document
    def self.of(&)
      sent = []
      trace = TracePoint.new(:call) do |point|
        next unless point.method_id == :rows && point.defined_class == Castellan::Rows::ActiveRecordRows::Session

        sent << %i[sql ids].map { |name| point.binding.local_variable_get(name) }
      end
      trace.enable(&)
      new(sent)
    end

    def initialize(sent)
      @connection = ActiveRecord::Base.connection.raw_connection
      @dialect = Castellan::Rows.for(ActiveRecord::Base.descendants.find { |model| !model.abstract_class? }).dialect
      @sent = sent.map.with_index { |(sql, ids), index| [prepare("castellan_raw_#{object_id}_#{index}", sql), ids && @dialect.bind(ids)] }
    end

    # @return [Integer]
    def size
      @sent.size
    end

    # @return [Array] the results of the driver
    def call
      @sent.map { |statement, value| @dialect.name == :postgres ? postgres(statement, value) : sqlite(statement, value) }
    end

    private

    def prepare(name, sql)
      return @connection.prepare(sql) if @dialect.name == :sqlite

      @connection.prepare(name, sql)
      name
    end

    def postgres(name, value)
      @connection.exec_prepared(name, value ? [value] : [])
    end

    def sqlite(statement, value)
      statement.reset!
      statement.bind_param(1, value) if value
      statement.to_a
    end
  end
end
