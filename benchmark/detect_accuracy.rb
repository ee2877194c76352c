# frozen_string_literal: true

# Compares the accuracy of Castellan, Bullet and Prosopite on the labelled samples of test/detect/accuracy.
#
#   rake bench:detect_accuracy                 # writes benchmark/detect_accuracy.md
#   BENCH_SHORT=1 rake bench:detect_accuracy   # the same, without writing
#
# Measures no time, so a busy machine does not matter. Each detector runs in its own process with its
# defaults. All detectors report whether code repeats a query, so this is compared; Castellan's findings are
# also compared with the whole label.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__, gemfile: File.join(__dir__, "detect_accuracy/Gemfile"))

require "json"
require "open3"
require_relative "../test/support/servers"

module DetectAccuracy
  class Report
    DETECTORS = %w[castellan bullet prosopite].freeze
    NAMES = { "castellan" => "Castellan", "bullet" => "Bullet", "prosopite" => "Prosopite" }.freeze
    SIGNS = { hit: "found", quiet: "quiet", miss: "**missed**", invented: "**false**", unseen: "-" }.freeze

    def run
      ask
      text = [heading, totals, table].join("\n")
      puts text.lines.first(40).join
      File.write(File.join(__dir__, "detect_accuracy.md"), text) unless ENV["BENCH_SHORT"] == "1"
      File.open(ENV.fetch("BENCH_JSON"), "a") { |file| summaries.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
      abort("Castellan's answers are not those that the samples are marked with: #{unmarked.join("; ")}") if unmarked.any?
    end

    private

    def ask
      @versions = {}
      @answers = DETECTORS.to_h do |name|
        version, *answers = lines_of(name)
        @versions[name] = version.fetch("version")
        [name, answers]
      end
    end

    def lines_of(name)
      output, errors, status = Open3.capture3(RbConfig.ruby, File.join(__dir__, "detect_accuracy/run.rb"), name, *postgres_url)
      abort("#{name} did not run: #{errors}") unless status.success?

      output.lines.map { |line| JSON.parse(line) }
    end

    # A database for each detector, because each creates the same tables.
    def postgres_url = Castellan::TestServers.available?(:postgres) ? [Castellan::TestServers.postgres_url] : []

    def outcome(answer)
      return :unseen if answer["found"].nil?
      return answer["found"] ? :hit : :miss if answer["expected"].any?

      answer["found"] ? :invented : :quiet
    end

    # Samples that are wrong without being marked as wrong, or right although they are marked.
    def unmarked = @answers["castellan"].reject { |answer| answer["exact"] == answer["wrong"].nil? }.map { |answer| name_of(answer) }

    def name_of(answer) = answer.values_at("group", "kind", "title").join(": ")

    def count(name, answers) = answers_of(name, answers).map { |answer| outcome(answer) }.tally

    # The verdicts of another detector on the same samples.
    def answers_of(name, chosen) = @answers[name].values_at(*chosen)

    def choose(&block) = @answers["castellan"].each_index.select { |index| block.call(@answers["castellan"][index]) }

    def sets
      { "all of ActiveRecord" => of_active_record { true },
        "… N+1 (`n_plus_one`)" => of_active_record { |kinds| kinds.include?("n_plus_one") },
        "… the same again (`duplicate`)" => of_active_record { |kinds| kinds.include?("duplicate") },
        "… answered by the query cache (`cached_repeat`)" => of_active_record { |kinds| kinds.include?("cached_repeat") },
        "… writes in a loop (`write_loop`)" => of_active_record { |kinds| kinds.include?("write_loop") },
        "… nothing to find" => of_active_record(&:empty?),
        "all of Sequel" => choose { |answer| answer["group"] == "Sequel" },
        "all of pg and sqlite3" => choose { |answer| %w[pg sqlite3].include?(answer["group"]) } }
    end

    def of_active_record = choose { |answer| answer["group"] == "ActiveRecord" && yield(answer["kinds"]) }

    # @return [Array(String, String, Array<Integer>)] two parts of each set: the fitted and the held-out
    #   samples
    def parts
      sets.flat_map do |set, chosen|
        held_out, fitted = chosen.partition { |index| @answers["castellan"][index]["held_out"] }
        [[set, "fitted", fitted], [set, "held out", held_out]]
      end
    end

    def summaries
      parts.flat_map do |set, part, chosen|
        DETECTORS.map do |name|
          { benchmark: "detect_accuracy", set: set, part: part, detector: name, samples: chosen.size, **count(name, chosen) }
        end
      end
    end

    def heading
      <<~TEXT
        # How often the detectors are right

        #{@answers["castellan"].size} labelled samples of code, each run once under #{NAMES.map { |name, title| "#{title} #{@versions[name]}" }.join(", ")}; Ruby
        #{RUBY_VERSION}, ActiveRecord #{Gem.loaded_specs["activerecord"].version}. Written by `rake bench:detect_accuracy`; nothing is timed.

        The samples are Castellan's own (test/detect/accuracy/cases), written to cover every way to send a statement that its design names, so
        they say where the others differ and not how good they are: Bullet looks at associations only and does not claim to see writes or
        repeated statements; neither of the others hears of Sequel, pg or sqlite3. *found* and **missed** are of samples in which something
        repeats, *quiet* and **false** of those in which nothing does. Found is whoever says anything of repetition; of Castellan the last
        column says whether kind, number of statements, association and line were all as labelled, with nothing besides. Bullet is not
        asked about unused eager loading.

        Three in ten samples, chosen by a checksum of their names, are *held out*: no rule of the detector may be fitted to them. Rules older
        than this split have seen them. #{known_mistakes}
      TEXT
    end

    def known_mistakes
      reasons = @answers["castellan"].filter_map { |answer| answer["wrong"] }.tally
      return "Castellan judges every sample as labelled." if reasons.empty?

      "Castellan is known to judge #{reasons.map { |reason, number| "#{number} wrongly (#{reason})" }.join(", ")};\n" \
        "both tables count these as wrong."
    end

    def totals
      rows = parts.map do |set, part, chosen|
        cells = DETECTORS.map { |name| total(count(name, chosen)) }
        exact = answers_of("castellan", chosen).count { |answer| answer["exact"] }
        "| #{[set, part, chosen.size, *cells, exact].join(" | ")} |\n"
      end
      "| samples | part | | #{NAMES.values.join(" | ")} | exact |\n|---|---|---|---|---|---|---|\n#{rows.join}"
    end

    def total(counts)
      return "-" if counts.keys == [:unseen]

      right = counts.fetch(:hit, 0) + counts.fetch(:quiet, 0)
      wrong = { "missed" => counts[:miss], "false" => counts[:invented] }.compact.map { |word, number| "#{number} #{word}" }
      [right, *wrong].join(", ")
    end

    def table
      rows = @answers["castellan"].each_index.map do |index|
        answer = @answers["castellan"][index]
        cells = DETECTORS.map { |name| SIGNS.fetch(outcome(@answers[name][index])) }
        part = answer["held_out"] ? "held out" : "fitted"
        "| #{[name_of(answer), part, label(answer), *cells, answer["exact"] ? "yes" : "**no**"].join(" | ")} |\n"
      end
      "\n## Every sample\n\n| sample | part | label | #{NAMES.values.join(" | ")} | exact |\n|---|---|---|---|---|---|---|\n#{rows.join}"
    end

    def label(answer)
      answer["expected"].empty? ? "nothing" : answer["expected"].map { |one| one.sub(/ line \d+\z/, "") }.join(", ")
    end
  end
end

DetectAccuracy::Report.new.run
