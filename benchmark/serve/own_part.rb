# frozen_string_literal: true

module Benchmarks
  # Measures Castellan's own CPU time for a response, without statements and finding the viewer.
  #
  #   OwnPart.new(entry, lambda_entry) { |env| Token.viewer(env) }.us(9)   # => [231.0, 88.0, 290.5]: the call, the rest, the lambda's call
  #
  # This is the CPU time of `call`, minus that of sending the same statements by hand on the same connection
  # in the same pipelines, and of finding the viewer.
  class OwnPart
    CALLS = 200

    # @param entry [Contest::Entry] an application that sends its statements to PostgreSQL in pipelines
    # @param written [Contest::Entry] a hand-written lambda for the same response: the lower limit
    # @yieldparam env [Hash]
    def initialize(entry, written, &viewer)
      @entry = entry
      @written = written
      @viewer = viewer
    end

    # @return [Array(Float, Float, Float)] µs, the medians of the rounds
    def us(rounds)
      pipelines = recorded
      found = Array.new(rounds) { [time { @entry.answer }, time { by_hand(pipelines) }, time { @written.answer }] }
      found.transpose.map { |values| Castellan::Figures.median(values).round(1) }
    end

    private

    # @return [Array<Array>] for each pipeline, the connection, and the names and values of the statements
    def recorded
      @entry.answer
      sent = []
      trace = TracePoint.new(:call) do |point|
        next unless point.method_id == :initialize && point.defined_class == Castellan::Rows::PostgresDriver::Pipeline

        sent << %i[connection queries].map { |name| point.binding.local_variable_get(name) }
      end
      trace.enable { @entry.answer }
      abort "#{@entry.name} sends no pipelines" if sent.empty?
      sent.each_with_index.map { |(connection, queries), index| [connection, prepared(connection, queries, index)] }
    end

    def prepared(connection, queries, index)
      queries.each_with_index.map do |query, position|
        name = "own_part_#{index}_#{position}"
        connection.prepare(name, query.sql)
        [name, query.ids ? [Castellan::Rows::PostgresDriver.bind(query.ids)] : []]
      end
    end

    def by_hand(pipelines)
      @viewer.call(@entry.env)
      pipelines.each do |connection, statements|
        connection.enter_pipeline_mode
        statements.each { |name, values| connection.send_query_prepared(name, values) }
        connection.pipeline_sync
        statements.each { connection.get_last_result }
        connection.get_result # the result of the sync
        connection.exit_pipeline_mode
      end
    end

    def time
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      CALLS.times { yield }
      (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before) * 1_000_000 / CALLS
    end
  end
end
