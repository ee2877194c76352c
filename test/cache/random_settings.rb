# frozen_string_literal: true

require "document/library"
require_relative "random_writer"

# The tables and versions of a random test, what is written to them, and when an answer may no longer be stale.
#
#   setting = RandomSettings::Replicas.new(Random.new(17), often: 20)
#   setting.versions                      # one of each process
#   setting.around do
#     setting.write                       # and later answers must include what was committed
#     setting.places.each { |place| place.call { … } }
#   end
module RandomSettings
  # Plain tables of one database.
  class Tables
    PLACES = [->(&read) { read.call }].freeze
    WRITES = [
      ->(rng) { "UPDATE articles SET title = 'T#{rng.rand(1_000_000)}' WHERE id = #{rng.rand(9)}" },
      ->(rng) { "UPDATE articles SET author_id = #{rng.rand(1..3)} WHERE id = #{rng.rand(9)}" },
      ->(rng) {
        "INSERT INTO articles (id, author_id, title, position) SELECT #{n = rng.rand(8..40)}, 1, 'New', 1 " \
          "WHERE NOT EXISTS (SELECT 1 FROM articles WHERE id = #{n})"
      },
      ->(rng) { "DELETE FROM articles WHERE id = #{rng.rand(8..40)}" },
      ->(rng) { "UPDATE authors SET name = 'N#{rng.rand(1_000_000)}' WHERE id = #{rng.rand(1..3)}" },
      ->(rng) { "DELETE FROM taggings WHERE id % 3 = #{rng.rand(3)}" }
    ].freeze
    RESTORES = [
      ["TRUNCATE articles", "--data-only", "--disable-triggers"], # leaves the triggers enabled, but not ALWAYS
      ["TRUNCATE articles", "--data-only", "--disable-triggers", "--single-transaction"],
      ["SELECT 1", "--clean", "--if-exists"]
    ].freeze

    attr_reader :library, :versions

    # @param random [Random]
    # @param often [Integer] one of so many writes is a change that waits for no other writer
    def initialize(random, often:)
      @random = random
      @often = often
      @altered = 0
      @library = self.class.library
      @library.fill
      @versions = new_versions
      install
      @writers = Array.new(3) { RandomWriter.new(@library.url, random, changes: changes) }
      @dump = File.join(Dir.mktmpdir, "dump")
      command("pg_dump", "--format=custom", "--table=#{restored}", "--file=#{@dump}", @library.url)
    end

    def self.library = Library.active_record(:postgres)

    def places = PLACES
    def kind = :exact
    def around = yield

    def write
      return change if @random.rand(@often).zero?

      @writers.sample(random: @random).step { |random| writes.sample(random: random).call(random) }
    end

    # @return [Array<String>] the changes that have not succeeded yet
    def unchanged = changes - @writers.flat_map(&:changed)

    # Removes the triggers.
    def stop
      @writers.each(&:close)
      @versions.first.uninstall(Library::TABLES)
      FileUtils.rm_rf(File.dirname(@dump))
    end

    private

    def new_versions = Array.new(2) { @library.versions }
    def install = @versions.first.install(Library::TABLES)
    def writes = WRITES
    def changes = RandomWriter::CHANGES
    def restored = "articles"
    def restores = RESTORES
    def altered = @altered + @writers.sum { |writer| writer.changed.size }

    # Nothing waits, because no transaction is open.
    def change
      @writers.each(&:finish)
      @altered += 1
      case @random.rand(8)
      when 0 then restore
      when 1, 2 then install # nothing is kept after many of the changes
      else @writers.sample(random: @random).change(next_change)
      end
    end

    def next_change
      @next = changes.shuffle(random: @random) if @next.nil? || @next.empty?
      @next.pop
    end

    def restore
      before, *options = restores.sample(random: @random)
      @library.run(before)
      command("pg_restore", *options, "--dbname=#{@library.url}", @dump)
    end

    def await
      deadline = Castellan::TestServers.now + 30
      until yield
        raise "did not happen within 30 s" if Castellan::TestServers.now > deadline

        Thread.pass
      end
    end

    def command(program, *arguments)
      output = IO.popen([Castellan::TestServers.tool(program), *arguments, { err: %i[child out] }], &:read)
      raise "#{program}: #{output}" unless $?.success?
    end
  end

  # Articles in partitions by their author, one of which has partitions itself.
  class Partitions < Tables
    class PartitionedLibrary < ActiveRecordLibrary
      PARTITIONS = ["articles_1 PARTITION OF articles FOR VALUES IN (1)",
                    "articles_2 PARTITION OF articles FOR VALUES IN (2) PARTITION BY RANGE (id)",
                    "articles_2_low PARTITION OF articles_2 FOR VALUES FROM (MINVALUE) TO (5)",
                    "articles_2_high PARTITION OF articles_2 FOR VALUES FROM (5) TO (100)",
                    "articles_3 PARTITION OF articles FOR VALUES IN (3)",
                    "articles_more PARTITION OF articles DEFAULT"].freeze

      def self.only = @only ||= new(:postgres)

      # Also attaches again what was detached.
      def fill
        run("DROP TABLE IF EXISTS articles, articles_2_low, articles_3")
        run("CREATE TABLE articles (id bigserial, author_id bigint, title varchar(80), body text, position integer, " \
            "PRIMARY KEY (id, author_id)) PARTITION BY LIST (author_id)")
        PARTITIONS.each { |partition| run("CREATE TABLE #{partition}") }
        super
      end

      private

      def connect
        super
        @models::Article.primary_key = "id"
      end
    end

    WRITES = [
      *Tables::WRITES,
      ->(rng) { "UPDATE articles SET author_id = #{rng.rand(1..4)} WHERE id % 5 = #{rng.rand(5)}" },
      ->(rng) { "UPDATE articles_1 SET title = 'One #{rng.rand(1_000_000)}' WHERE id % 3 = #{rng.rand(3)}" },
      ->(rng) { "UPDATE articles_2 SET id = #{rng.rand(41..99)} WHERE id = #{rng.rand(9)}" },
      ->(rng) { "UPDATE articles_2_low SET title = 'Low #{rng.rand(1_000_000)}'" },
      ->(rng) { "DELETE FROM articles_2_high WHERE id = #{rng.rand(5..99)}" },
      ->(rng) {
        "INSERT INTO articles_3 (id, author_id, title, position) SELECT #{n = rng.rand(50..60)}, 3, 'Direct', 1 " \
          "WHERE NOT EXISTS (SELECT 1 FROM articles WHERE id = #{n})"
      }
    ].freeze
    MOVE = "WITH moved AS (DELETE FROM articles_more WHERE author_id = 3 RETURNING *) INSERT INTO articles_3 SELECT * FROM moved"
    CHANGES = [
      *RandomWriter::CHANGES,
      "TRUNCATE articles_1",
      "TRUNCATE articles_2",
      "TRUNCATE articles",
      "ALTER TABLE articles DETACH PARTITION articles_3",
      "BEGIN; #{MOVE}; ALTER TABLE articles ATTACH PARTITION articles_3 FOR VALUES IN (3); COMMIT",
      "BEGIN; ALTER TABLE articles DETACH PARTITION articles_1; UPDATE articles_1 SET title = 'Apart'; " \
      "ALTER TABLE articles ATTACH PARTITION articles_1 FOR VALUES IN (1); COMMIT",
      "ALTER TABLE articles_2 DETACH PARTITION articles_2_low",
      "ALTER TABLE articles_2 ATTACH PARTITION articles_2_low FOR VALUES FROM (MINVALUE) TO (5)",
      "CREATE TABLE articles_2_last PARTITION OF articles_2 FOR VALUES FROM (100) TO (200)", # no trigger
      "DROP TABLE articles_2_last",
      "BEGIN; ALTER TABLE articles_1 DISABLE TRIGGER castellan_version; UPDATE articles_1 SET title = 'Unnoticed'; " \
      "ALTER TABLE articles_1 ENABLE ALWAYS TRIGGER castellan_version; COMMIT",
      "ALTER TABLE articles_2_high DISABLE TRIGGER castellan_version",
      "ALTER TABLE articles_2_high ENABLE ALWAYS TRIGGER castellan_version"
    ].freeze
    RESTORES = Tables::RESTORES.first(2).freeze

    def self.library = PartitionedLibrary.only

    private

    def writes = WRITES
    def changes = CHANGES
    def restored = "articles_1"
    def restores = RESTORES
  end

  # A streaming replica, whose replay is paused while it is read. It is read together with its primary, from the same store.
  class Replicas < Tables
    class ReplicatedLibrary < ActiveRecordLibrary
      attr_reader :replica_url

      private

      # A commit reaches the replica at once, and no vacuum holds a lock there while replay is paused.
      def database_url
        url, @replica_url = Castellan::TestServers.postgres_with_replica(settings: %w[synchronous_commit=on autovacuum=off])
        url
      end

      def connect
        super
        @models::Base.connection_handler.establish_connection(@replica_url, owner_name: @models::Base, role: :reading)
      end
    end

    def self.library = @library ||= ReplicatedLibrary.new(:postgres)

    def initialize(...)
      super
      @primary, @replica = [@library.url, @library.replica_url].map { |url| PG.connect(url) }
      catch_up
    end

    def places = [*PLACES, ->(&read) { ActiveRecord::Base.connected_to(role: :reading, &read) }]

    def write
      super
      catch_up if @random.rand < 0.5
    end

    def stop
      @replica.exec("SELECT pg_wal_replay_resume()")
      [@primary, @replica].each(&:close)
      super
    end

    private

    # Until the replica has what was committed, and no more.
    def catch_up
      @replica.exec("SELECT pg_wal_replay_resume()")
      position = @primary.exec("SELECT pg_current_wal_flush_lsn()").getvalue(0, 0)
      await { @replica.exec_params("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", [position]).getvalue(0, 0) == "t" }
      @replica.exec("SELECT pg_wal_replay_pause()")
      await { @replica.exec("SELECT pg_get_wal_replay_pause_state()").getvalue(0, 0) == "paused" }
    end
  end

  # Two processes that listen for notifications.
  module Listening
    RECHECK = 3600
    LATER_NS = (RECHECK + 1) * 1_000_000_000
    MARKS = %w[stamps].freeze

    def initialize(...)
      @lost = []
      @ahead_ns = 0
      super
    end

    def kind = :notified

    # With a clock that {#write} moves past `recheck:`, because DDL sends no notification.
    def around(&block)
      real = Castellan::Clock.method(:monotonic_ns).unbind.bind(Castellan::Clock)
      Castellan::Clock.stub(:monotonic_ns, -> { real.call + @ahead_ns }, &block)
    end

    def write
      before = altered
      super
      @ahead_ns += LATER_NS if altered > before
      notice
      raise @lost.first if @lost.any?
    end

    def stop
      @versions.each(&:close)
      @versions.first.uninstall(MARKS)
      super
    end

    private

    def new_versions
      Array.new(2) do
        Castellan::Versions::NotifiedVersions.new(@library.models::Base, recheck: RECHECK, log: ->(line) { @lost << line })
      end
    end

    def install = @versions.first.install(Library::TABLES + MARKS)

    # Until each process has counted a notification that was sent after the write: PostgreSQL sends them in the order of
    # commits. A token would not tell, because the notifications of a partition, too, make it be read anew.
    def notice
      await { @versions.all?(&:listening?) }
      before = @versions.map { |versions| marks(versions) }
      @library.run("DELETE FROM stamps")
      await { @versions.map { |versions| marks(versions) } == before.map { |count| count + 1 } || @lost.any? }
    end

    # The listener counts the tables that it was asked for.
    def marks(versions)
      listener = versions.instance_variable_get(:@listener)
      listener.generation(MARKS, Castellan::Clock.monotonic_ns)
      listener.instance_variable_get(:@writes).fetch(MARKS.first)
    end
  end

  # Notifications with the names of the tables.
  class Notifications < Tables
    include Listening
  end

  # Notifications of partitions, which have no name.
  class NotifiedPartitions < Partitions
    include Listening
  end
end
