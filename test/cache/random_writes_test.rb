# frozen_string_literal: true

require "test_helper"
require_relative "compared_answers"
require_relative "random_settings"

# Two processes answer as an application without a cache does, also to a client that sends the ETag of its last answer, while
# others write at random, also after the request has read the rows into the query cache. Together, the classes compare 100,000
# answers in `bin/test --all`.
module RandomWrites
  include ComparedAnswers

  ANSWERS_OF_A_ROUND = 8 # plain, gzip, fetch and 304, of two processes

  def setup
    needs :postgres, :redis
    @before = Castellan.keeper
    @rng = Random.new(Integer(ENV.fetch("SEED", "17")))
  end

  def teardown
    Castellan.keeper = @before
    @setting&.stop
  end

  private

  # @param answers [Integer] how many to compare with `bin/test --all`
  def assert_never_stale(setting, answers)
    @setting = setting.new(@rng, often: LARGE ? 10 : 5)
    @app = app
    keepers = @setting.versions.map { |versions| keeper(tiered, versions) }
    rounds = LARGE ? (answers / @setting.places.size / ANSWERS_OF_A_ROUND.to_f).ceil : 30
    stale = @setting.around { Array.new(rounds) { |number| stale_answers(keepers).map { |name| "#{name} in round #{number}" } } }
    assert_empty stale.flatten, "SEED=#{@rng.seed}"
    assert_operator @setting.unchanged.size, :<, 3, @setting.unchanged.inspect if LARGE
  end

  # @return [Array<String>] see {#wrong_answers}
  def stale_answers(keepers)
    return answered(keepers) if @rng.rand < 0.5

    library.models::Base.cache do
      titles
      answered(keepers)
    end
  end

  def answered(keepers)
    @setting.write if @rng.rand < 0.6
    viewer = VIEWERS.sample(random: @rng)
    keepers = keepers.shuffle(random: @rng)
    @setting.places.flat_map do |place|
      place.call do
        right = fresh(viewer)
        keepers.flat_map do |keeper|
          Castellan.keeper = keeper
          wrong_answers(viewer, right) + (revalidated?(viewer, right) ? [] : ["304"])
        end
      end
    end
  end

  # Sends the ETag that the viewer has got last, from whatever process and server.
  def revalidated?(viewer, right)
    etag, bytes = (@seen ||= {})[viewer]
    response = request(viewer, "HTTP_IF_NONE_MATCH" => etag)
    return bytes == right if response.status == 304

    @seen[viewer] = [response["etag"], response.body.b]
    response.status == 200 && response.body.b == right
  end
end

class RandomWritesTablesTest < Minitest::Test
  include RandomWrites

  def test_random_writes_are_never_answered_stale = assert_never_stale(RandomSettings::Tables, 35_000)
end

class RandomWritesPartitionsTest < Minitest::Test
  include RandomWrites

  def test_random_writes_are_never_answered_stale = assert_never_stale(RandomSettings::Partitions, 15_000)
end

class RandomWritesReplicasTest < Minitest::Test
  include RandomWrites

  def test_random_writes_are_never_answered_stale = assert_never_stale(RandomSettings::Replicas, 20_000)
end

class RandomWritesNotificationsTest < Minitest::Test
  include RandomWrites

  def test_random_writes_are_never_answered_stale = assert_never_stale(RandomSettings::Notifications, 15_000)
end

class RandomWritesNotifiedPartitionsTest < Minitest::Test
  include RandomWrites

  def test_random_writes_are_never_answered_stale = assert_never_stale(RandomSettings::NotifiedPartitions, 15_000)
end
