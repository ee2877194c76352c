# frozen_string_literal: true

require "digest/sha2"
require "json"
require "time"
require "zlib"
require_relative "errors"
require_relative "figures"

module Castellan
  # Keeps the figures of a request after each step of the work on it, in a file of JSON Lines.
  #
  #   ledger = Castellan::Ledger.new("ledger.jsonl")
  #   ledger.add(request: "GET /users", step: "as it was", conditions: "Ruby 3.4.1", figures: { duration_ms: 812.0, queries: 1_139 })
  #   ledger.add(request: "GET /users", step: "preload", conditions: "Ruby 3.4.1", figures: { duration_ms: 98.1, queries: 7 })
  #   puts ledger   # a Markdown table for each request; "preload" is 8.3 × as fast as "as it was"
  #
  # Compares each step with the one before, by requests per second or else by duration. Two steps are the same if they
  # differ by less than 5 %, or if not all runs of the one were faster than all runs of the other. Several processes may
  # add steps to one file.
  class Ledger
    # Raised if the file contains anything other than steps.
    class Error < Castellan::Error; end

    # field => the heading of its column and the method of {Figures} that formats it
    COLUMNS = { requests_per_s: ["req/s", :number], duration_ms: ["ms", :number], sql_ms: ["SQL ms", :number], queries: ["queries", :count],
                allocated_objects: ["objects", :count], allocated_bytes: ["allocated", :bytes], p50_ms: ["p50 ms", :number],
                p95_ms: ["p95 ms", :number], p99_ms: ["p99 ms", :number], availability: ["available", :percent] }.freeze
    SAME = 1.05
    private_constant :COLUMNS, :SAME

    # @param path [String] the file; {#add} creates it if it does not exist
    # @raise [Error] if it is a folder, a pipe or a device, or if a line of it is not a step
    # @raise [SystemCallError] if the file cannot be read or written
    def initialize(path)
      @path = File.expand_path(path)
      @rows = File.exist?(@path) ? read : []
      raise Errno::ENOTDIR, File.dirname(@path) unless File.directory?(File.dirname(@path))
      raise Errno::EACCES, @path unless File.writable?(File.exist?(@path) ? @path : File.dirname(@path))
    end

    # @param request [String] such as "GET /users"; the steps of a request are compared with each other
    # @param step [String, nil] what was changed; nil: "step" and its number, such as "step 2"
    # @param conditions [String] such as the version of Ruby; steps under different conditions are not compared
    # @param figures [Hash{Symbol => Numeric, nil}] requests_per_s, p50_ms, p95_ms, p99_ms and availability of a load test; or
    #   duration_ms, sql_ms, queries, allocated_objects, allocated_bytes and response_bytes of one request, with the
    #   shortest and longest duration of its runs as range_ms: [96.2, 99.0]
    # @param body [String, nil] the response's; only a digest is stored. Neither the order of members in JSON nor gzip matters
    # @raise [Error] if a figure is not an Integer or a finite Float
    # @raise [SystemCallError] if the disk is full; the file then stays as it was
    def add(request:, step:, conditions:, figures:, body: nil)
      row = { request: utf8(request), step: step && utf8(step), at: Time.now.utc.iso8601, conditions: utf8(conditions),
              **figures.slice(*COLUMNS.keys, :response_bytes, :range_ms),
              content: (Digest::SHA256.hexdigest(normal(body)) if body) }.compact
      raise Error, "figures: must be Integers or finite Floats, got #{figures.inspect}" unless figures?(row)

      append(row)
    end

    # @return [Boolean] whether the ledger has no steps
    def empty? = @rows.empty?

    # @param requests [Array<String>] those to show; all if empty
    # @return [String] a Markdown table for each request, and below it the last step compared with the first
    def to_s(*requests)
      requests = requests.empty? ? @rows.map { |row| row[:request] }.uniq : requests.map { |request| utf8(request) }
      requests.map { |request| ["## #{cell(request)}", "", *table(of(request)), *summary(of(request))].join("\n") }.join("\n\n")
    end

    private

    def read
      raise Error, "#{@path} is not a file; name one for the ledger, such as ledger.jsonl" unless File.file?(@path)

      rows_of(File.read(@path, encoding: "BOM|UTF-8"))
    end

    def rows_of(text)
      text.each_line.with_index(1).filter_map { |line, number| parsed(line, number) unless line.b.strip.empty? }
    end

    # Reads the steps again, because another process may have added one. Ends the last line first, because editors and
    # merges may have left it without a newline.
    def append(row)
      File.open(@path, "a+", encoding: "UTF-8") do |file|
        file.flock(File::LOCK_EX)
        size = file.size
        text = file.read.delete_prefix("\uFEFF")
        @rows = rows_of(text)
        row = { **row, step: "step #{of(row[:request]).size + 1}" } unless row[:step]
        file.sync = true
        file.write("#{"\n" unless text.empty? || text.end_with?("\n")}#{JSON.generate(row)}\n")
        @rows << row
      rescue SystemCallError
        file.truncate(size) if size
        raise
      end
    end

    # In the locale C, the arguments of a command are UTF-8 that Ruby marks as US-ASCII.
    def utf8(text)
      marked = text.dup.force_encoding(Encoding::UTF_8)
      marked.valid_encoding? ? marked : text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    end

    def of(request) = @rows.select { |row| row[:request] == request }

    def parsed(line, number)
      row = JSON.parse(line, symbolize_names: true)
      return row if row.is_a?(Hash) && row.values_at(:request, :step, :conditions).all?(String) && figures?(row)

      raise Error, "#{@path}:#{number} is not a step of a ledger; give another file, or delete the line"
    rescue JSON::ParserError, ::EncodingError
      raise Error, "#{@path}:#{number} is not JSON, so this is no ledger; give another file, or delete the line"
    end

    def figures?(row)
      figures = [*row.values_at(*COLUMNS.keys, :response_bytes).compact, *row[:range_ms]]
      figures.all? { |figure| figure.is_a?(Integer) || (figure.is_a?(Float) && figure.finite?) } && (row[:range_ms] || []).is_a?(Array)
    end

    def normal(body)
      body = unpacked(body)
      JSON.generate(sorted(JSON.parse(body)))
    rescue JSON::JSONError, ::EncodingError
      body
    end

    # The header of gzip has the time.
    def unpacked(body)
      body.b.start_with?("\x1F\x8B".b) ? Zlib.gunzip(body) : body
    rescue Zlib::Error
      body
    end

    def sorted(value)
      case value
      when Hash then value.sort.to_h.transform_values { |one| sorted(one) }
      when Array then value.map { |one| sorted(one) }
      else value
      end
    end

    def table(rows)
      columns = COLUMNS.select { |field, _| rows.any? { |row| row[field] } }
      lines = [["step", "compared", *columns.each_value.map(&:first), "response"]] +
              rows.each_with_index.map { |row, index| cells(row, (rows[index - 1] if index.positive?), columns) }
      lines.each(&:pop) if lines.drop(1).all? { |line| line.last.empty? }
      widths = lines.transpose.map { |column| [3, *column.map(&:size)].max }
      lines.map! { |line| line.each_with_index.map { |text, index| index.zero? ? text.ljust(widths[index]) : text.rjust(widths[index]) } }
      lines.insert(1, widths.each_with_index.map { |width, index| index.zero? ? "-" * width : "#{"-" * (width - 1)}:" })
           .map { |line| "| #{line.join(" | ")} |" }
    end

    def cells(row, before, columns)
      figures = columns.map { |field, (_, format)| row[field] ? Figures.public_send(format, row[field]) : "" }
      size = row[:response_bytes] && Figures.bytes(row[:response_bytes])
      [cell(row[:step]), before ? compared(row, before) : "", *figures, [size, ("changed" if changed?(row, before))].compact.join(", ")]
    end

    def compared(row, before)
      factor = factor(row, before) or return "not comparable"
      same?(factor, row, before) ? "same" : Figures.times(factor)
    end

    # @return [Float, nil] above 1 if the row is faster; nil if the two cannot be compared
    def factor(row, before)
      return unless row[:conditions] == before[:conditions]

      name = %i[requests_per_s duration_ms].find { |field| row[field] && before[field] } or return
      mine, theirs = row[name].to_f, before[name].to_f
      return unless mine.positive? && theirs.positive?

      name == :requests_per_s ? mine / theirs : theirs / mine
    end

    def same?(factor, row, before)
      return true if factor.between?(2 - SAME, SAME)

      mine, theirs = row[:range_ms], before[:range_ms]
      mine&.size == 2 && theirs&.size == 2 && mine.first <= theirs.last && theirs.first <= mine.last
    end

    def changed?(row, before) = before && row[:content] && before[:content] && row[:content] != before[:content]

    def summary(rows)
      first, last = rows.first, rows.last
      return [] if rows.size < 2 || !(factor = factor(last, first))

      other = ", and its response changed" if changed?(last, first)
      speed = same?(factor, last, first) ? "as fast as" : "#{Figures.times(factor)} as fast as"
      ["", "“#{cell(last[:step])}” is #{speed} “#{cell(first[:step])}”#{other}."]
    end

    def cell(text) = text.scrub.gsub(/[|\\]/) { |mark| "\\#{mark}" }.gsub("<", "&lt;").gsub(/[[:cntrl:]]+/, " ")
  end
end
