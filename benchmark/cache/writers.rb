# frozen_string_literal: true

require "pg"

# Measures what the triggers of versions take from eight clients that all write one table.
#
#   Writers.new(url, seconds: 1).rates(rounds: 5)   # => { without: 1210.0, exact: 1180.0, … } commits per second, medians
class Writers
  CLIENTS = 8
  # The least that a trigger can do for an exact version, written by hand: it inserts a row, or also notifies.
  FLOOR = <<~SQL
    CREATE TABLE IF NOT EXISTS floor (n bigint);
    CREATE OR REPLACE FUNCTION floor_bump() RETURNS trigger LANGUAGE plpgsql AS $f$
    BEGIN
      INSERT INTO floor VALUES (1);
      IF TG_NARGS > 0 THEN PERFORM pg_notify('floor', TG_RELID::text); END IF;
      RETURN NULL;
    END $f$;
  SQL
  # kind => arguments of {Castellan::Versions::ExactVersions#install}, or of the floor's trigger
  KINDS = { without: nil, floor: "", exact: {}, notifying_floor: "'notify'", notifying: { notify: true },
            columns: { by: %w[id post_id] } }.freeze

  def initialize(url, seconds:)
    @url = url
    @seconds = seconds
    @connection = ActiveRecord::Base.connection
    @connection.execute(FLOOR)
    @versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
  end

  # @return [Hash{Symbol => Float}] commits per second of all clients, medians
  def rates(rounds:)
    found = KINDS.transform_values { [] }
    rounds.times do
      KINDS.keys.shuffle.each do |kind|
        trigger(KINDS[kind])
        found[kind] << commits
      end
    end
    trigger(nil)
    found.transform_values { |some| Castellan::Figures.median(some) }
  end

  private

  def trigger(kind)
    @versions.uninstall(%w[comments])
    @connection.execute("DROP TRIGGER IF EXISTS floor ON comments")
    case kind
    when String
      @connection.execute("CREATE TRIGGER floor AFTER UPDATE ON comments FOR EACH STATEMENT EXECUTE FUNCTION floor_bump(#{kind})")
    when Hash then @versions.install(%w[comments], **kind)
    end
  end

  def commits
    pids_and_pipes = Array.new(CLIENTS) do |client|
      reader, writer = IO.pipe
      pid = fork { writer.write(write(client)) && exit!(0) }
      writer.close
      [pid, reader]
    end
    pids_and_pipes.sum { |pid, reader| reader.read.to_i.tap { Process.wait(pid) } } / @seconds.to_f
  end

  def write(client)
    connection = PG.connect(@url)
    count = 0
    ends = Castellan::Clock.monotonic_ns + (@seconds * 1_000_000_000)
    while count.zero? || Castellan::Clock.monotonic_ns < ends
      connection.exec_params("UPDATE comments SET body = body WHERE id = $1", [(client * 900) + (count % 900) + 1])
      count += 1
    end
    count
  end
end
