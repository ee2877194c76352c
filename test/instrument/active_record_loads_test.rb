# frozen_string_literal: true

require "test_helper"

# Each runs in its own process, because prepended modules stay.
class ActiveRecordLoadsTest < Minitest::Test
  WORLD = <<~RUBY
    require "active_record"
    require "castellan/detect"
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define { %i[users posts].each { |table| create_table(table) { |columns| columns.integer(:user_id) } } }
    class Post < ActiveRecord::Base; end
    class User < ActiveRecord::Base
      has_many :posts
    end
    3.times { User.create!.posts.create! }
  RUBY

  LOADS = <<~'RUBY'
    def listened = ActiveSupport::Notifications.notifier.listening?("instantiation.active_record")
    2.times { Castellan::Instrument.record(Castellan::Detect::Tally.new) { User.first } }
    tally = Castellan::Detect::Tally.new
    idle = Castellan::Detect::Tally.new
    Castellan::Instrument.record(tally) do
      User.preload(:posts).to_a
      User.eager_load(:posts).to_a
      User.cache { 2.times { User.all.to_a } }
      User.find_by_sql("SELECT * FROM users LIMIT 2")
      User.find(1).posts.to_a
      User.pluck(:id)
    end
    Castellan::Recording.open(idle) { User.all.to_a }
    sums = tally.loads.group_by(&:model).map { |model, loads| [model, loads.sum(&:count), loads.sum(&:times)] }
    puts "#{sums}, #{idle.loads.sum(&:count)} afterwards, #{"without an event" unless listened}"
  RUBY

  # The method of another version, with more arguments.
  CHANGED = <<~RUBY
    module ActiveRecord::Querying
      known = instance_method(:_load_from_sql)
      define_method(:_load_from_sql) { |result, *_more, &block| known.bind_call(self, result, &block) }
    end
  RUBY

  COUNTS = '[["User", 14, 5], ["Post", 3, 1]]'

  def test_each_load_of_several_records_notifies_once_without_an_event
    assert_equal "#{COUNTS}, 0 afterwards, without an event", counted(WORLD + LOADS)
  end

  def test_a_method_with_other_parameters_is_not_prepended
    assert_equal '[["User", 3, 1]], 0 afterwards, without an event', counted(WORLD + CHANGED + LOADS)
  end

  def test_models_defined_after_the_subscription_notify
    first = "require 'castellan/detect'; require 'active_support/all'; Castellan::Instrument.subscribe\n"
    assert_equal "#{COUNTS}, 3 afterwards, without an event", counted(first + WORLD + LOADS)
  end

  # As the patch of rack-mini-profiler does. Rails 7.1 lacks the number of rows in its event, so we hook `log` there.
  ALIASED = <<~RUBY
    require "castellan/detect"
    require "active_record"
    Castellan::Detect.production(sample: 1.0)
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    class ActiveRecord::ConnectionAdapters::AbstractAdapter
      alias_method :log_without_another, :log
      def log(...) = log_without_another(...)
    end
    puts ActiveRecord::Base.connection.select_value("SELECT 7")
  RUBY

  def test_another_gem_may_alias_the_adapters_log_after_the_subscription
    assert_equal "7", counted(ALIASED)
  end

  private

  def counted(program)
    run_ruby("-e", program).lines.last.chomp
  end
end
