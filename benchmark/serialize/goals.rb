# frozen_string_literal: true

module Benchmarks
  # Compares the goals of these works with the measured figures.
  #
  #   Goals.of(measured).each { |goal| puts [goal.text, goal.found, goal.verdict].join(" | ") }
  #
  # A goal that is not reached stays in the table.
  module Goals
    # `floor` is the figure of the program written by hand, {ByHand}.
    Goal = Struct.new(:text, :found, :verdict, :floor)

    JSONAPI = "jsonapi-serializer"
    AMS = "ActiveModel::Serializers"
    LIMIT = "the SELECTs alone, raw and prepared (the limit)"
    WRITTEN = "seven SELECTs written by hand, rows read"
    FLOOR = "a program by hand, SELECTs and text (the floor)"
    GROUPED = "one statement, grouped CTEs and string_agg"
    CORRELATED = "one statement, correlated json_agg"

    # work, database, way, at least how many times as fast, as which way
    FASTER = [
      [:people, "PostgreSQL", "Castellan", 70, JSONAPI], [:people, "PostgreSQL", "Castellan", 45, "Panko, nested"],
      [:people, "PostgreSQL", "Castellan", 1, WRITTEN], [:page, "PostgreSQL", "Castellan", 8, JSONAPI],
      [:people, "SQLite", "Castellan", 50, JSONAPI], [:people, "SQLite", "Castellan", 35, "Panko, nested"],
      [:page, "SQLite", "Castellan", 8, JSONAPI],
      [:users, "PostgreSQL", "Castellan", 70, JSONAPI], [:users, "PostgreSQL", "Castellan", 40, "Panko, nested"],
      [:users, "PostgreSQL", "Castellan", 60, "Alba, nested"], [:users, "PostgreSQL", "Castellan", 1, GROUPED],
      [:users, "PostgreSQL", "Castellan", 2, CORRELATED], [:users, "PostgreSQL", "Castellan", 30, AMS],
      [:people, "PostgreSQL", "Castellan, Ruby encoder", 10, JSONAPI],
      [:users, "PostgreSQL", "Castellan, Ruby encoder", 10, JSONAPI],
      [:posts, "PostgreSQL", "Castellan", 15, "to_json(include:)"], [:one, "PostgreSQL", "Castellan", 3, JSONAPI],
      [:one_attributes, "PostgreSQL", "Castellan", 2, JSONAPI],
      [:users, "SQLite", "Castellan", 40, JSONAPI], [:users, "SQLite", "Castellan", 20, "Panko, nested"],
      [:users, "SQLite", "Castellan", 30, AMS]
    ].freeze
    # database => at most how many objects per user
    OBJECTS = { "PostgreSQL" => 1, "SQLite" => 10 }.freeze
    SLOWER_THAN_LIMIT = 1.5
    FEWER_THAN_AMS = 100

    module_function

    # @param measured [Measured]
    # @return [Array<Goal>]
    def of(measured)
      [*FASTER.filter_map { |goal| faster(measured, *goal) }, *OBJECTS.keys.flat_map { |database| others(measured, database) },
       *measured.growth.map { |database, rows| growth(database, rows) },
       *measured.streamed.flat_map { |database, rows| [growth("#{database}, streamed", rows), peak(database, rows)] }]
    end

    def faster(measured, work, database, way, least, other)
      paired = measured.paired(work, database)
      return unless paired&.way?(way) && paired.way?(other)

      ratio = paired.times(way, other)
      text = "#{measured.title(work, database)}, #{database}: #{way} ≥ #{least} × #{other}"
      floor = "#{paired.times(FLOOR, other)} ×" if paired.way?(FLOOR) && least > 1
      Goal.new(text, "#{ratio} ×", ratio.verdict(least), floor)
    end

    def others(measured, database)
      paired = measured.paired(:users, database) or return []

      [(slower(paired, database) if database == "PostgreSQL"), objects(measured, paired, database), fewer(paired, database)].compact
    end

    def slower(paired, database)
      ratio = paired.times(LIMIT, "Castellan")
      text = "#{database}: the users in ≤ #{SLOWER_THAN_LIMIT} × the time of the SELECTs alone"
      Goal.new(text, "#{ratio} ×", ratio.verdict(SLOWER_THAN_LIMIT, at_most: true))
    end

    def objects(measured, paired, database)
      most = OBJECTS.fetch(database)
      found = (paired.objects("Castellan") / measured.users.to_f).round(2)
      Goal.new("#{database}: ≤ #{most} object#{"s" if most > 1} a user", found.to_s, verdict(found <= most))
    end

    def fewer(paired, database)
      found = (paired.objects(AMS) / paired.objects("Castellan").to_f).round
      Goal.new("#{database}: ≤ 1/#{FEWER_THAN_AMS} of the objects of #{AMS}", "1/#{found}", verdict(found >= FEWER_THAN_AMS))
    end

    def growth(database, rows)
      found = Growth.steepness(rows)
      text = "#{database}: a user of #{rows.last[:users]} costs ≤ #{Growth::ALLOWED} × one of a tenth as many (linear)"
      Goal.new(text, "#{found} ×", verdict(found <= Growth::ALLOWED))
    end

    def peak(database, rows)
      found = rows.map { |row| row[:peak_kb] }.max
      text = "#{database}: streaming #{rows.last[:users]} users takes ≤ 8 MB more memory than one"
      Goal.new(text, "#{(found / 1024.0).round(1)} MB", verdict(found <= Streamed::MOST_KB))
    end

    def verdict(reached)
      reached ? "reached" : "**not reached**"
    end
    private_class_method :faster, :others, :slower, :objects, :fewer, :growth, :peak, :verdict
  end
end
