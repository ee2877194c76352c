# frozen_string_literal: true

require "test_helper"
require "tmpdir"

class CallSiteTest < Minitest::Test
  Site = Castellan::CallSite

  def test_the_nearest_application_frame_is_named
    assert_equal "test/call_site_test.rb:#{__LINE__}", Site.location(Site.current)
  end

  def test_frames_of_ruby_are_skipped
    require "set"
    site = nil
    Set.new([1]).each { site = Site.current }
    assert_equal __LINE__ - 1, Site.line(site)
    assert_equal __FILE__, Site.path([3].sum { Site.current })
  end

  def test_ruby_and_c_return_the_same_sites
    deep = ->(depth, &ask) { depth.zero? ? ask.call : deep.call(depth - 1, &ask) }
    [0, 10, 40, 200].each { |depth| assert_equal(*deep.call(depth) { [Site.current, Site.current_in_ruby] }) }
  end

  def test_the_application_is_found_under_many_foreign_frames
    foreign = run_as("->(depth, ask) { depth.zero? ? ask.call : foreign(depth - 1, ask) }", "#{Gem.path.first}/gems/x/x.rb")
    define_singleton_method(:foreign, &foreign)
    [1, 20, 100, 600].each do |depth|
      site = foreign(depth, Site.method(:current))
      assert_equal "test/call_site_test.rb:#{__LINE__ - 1}", Site.location(site)
      assert_equal site, foreign(depth, Site.method(:current_in_ruby)) - (__LINE__ - Site.line(site))
    end
  end

  def test_castellans_own_frames_are_skipped
    own = run_as("-> { Castellan::CallSite.current }", File.join(ROOT, "lib/castellan/x.rb"))
    assert_equal __LINE__ + 1, Site.line(
      own.call
    )
  end

  def test_a_path_outside_the_application_stays_absolute
    Dir.mktmpdir do |directory|
      file = File.join(directory, "outside.rb")
      File.write(file, "Castellan::CallSite.current\n")
      assert_equal "#{file}:1", Site.location(run_as(File.read(file), file))
    end
  end

  def test_it_reads_the_line_of_source
    site = Site.current # this one
    assert_equal "site = Site.current # this one", Site.source(site)
  end

  def test_a_fiber_and_an_enumerator_have_sites
    assert_equal __LINE__, Site.line(Fiber.new { Site.current }.resume)
    assert_equal __LINE__, Site.line(Enumerator.new { |yielder| yielder << Site.current }.next)
  end

  def test_the_stack_holds_only_application_frames
    stack, here = [Site.stack, caller_locations(0, 1).first] # its label begins with the class from Ruby 3.4
    assert_equal "test/call_site_test.rb:#{here.lineno}:in `#{here.label}'", stack.first
    assert_empty stack.grep(/minitest/)
  end

  def test_application_frames_are_numbers_until_they_are_read
    outer = -> { Site.frames(2) }
    sites = outer.call
    assert_equal ["test/call_site_test.rb:#{__LINE__ - 2}:in `#{__method__}'", "test/call_site_test.rb:#{__LINE__ - 1}:in `#{__method__}'"],
                 sites.map { |site| Site.frame(site) }
    assert_equal Site.current, Site.frames(1).first
  end

  # As Rails reloads a file in development, after an edit.
  def test_a_frame_has_the_name_of_its_method_after_the_code_changed
    frames = %w[before after].map do |name|
      run_as("def self.#{name} = Castellan::CallSite.frames(1)", File.join(ROOT, "reloaded.rb"))
      Site.frame(TOPLEVEL_BINDING.receiver.public_send(name).first)
    end
    assert_equal ["reloaded.rb:1:in `before'", "reloaded.rb:1:in `after'"], frames
  end

  def test_a_block_and_its_method_on_one_line_are_one_frame
    sites = [1].map { Site.frames(9) }.first
    assert_equal [__LINE__ - 1], sites.map { |site| Site.line(site) }.first(1)
    assert_equal 1, sites.count { |site| Site.path(site) == __FILE__ }
  end

  def test_frames_are_the_same_in_ruby_and_in_c
    deep = ->(depth, &ask) { depth.zero? ? ask.call : deep.call(depth - 1, &ask) }
    [0, 10, 200].each do |depth|
      in_c, in_ruby = deep.call(depth) { [Site.frames(5), Site.frames_in_ruby(5)] }
      assert_equal in_c, in_ruby
      assert_operator in_c.size, :<=, 5
    end
  end

  # The C extension knows stacks again by their frames and lines.
  def test_frames_that_differ_in_one_line_far_below_are_not_taken_for_each_other
    deep = ->(depth, &ask) { depth.zero? ? ask.call : deep.call(depth - 1, &ask) }
    ask = -> { [Site.frames(60), Site.frames_in_ruby(60)] }
    3.times do
      one = deep.call(40, &ask)
      other = deep.call(40, &ask)
      assert_equal(*one)
      assert_equal(*other)
      refute_equal one, other
    end
  end

  def test_frames_of_alternating_depths_are_the_same_in_ruby_and_in_c
    foreign = run_as("->(depth, ask) { depth.zero? ? ask.call : foreign(depth - 1, ask) }", "#{Gem.path.first}/gems/x/x.rb")
    define_singleton_method(:foreign, &foreign)
    ask = -> { [Site.frames(9), Site.frames_in_ruby(9)] }
    3.times { [90, 3, 300, 20, 6, 150, 25].each { |depth| assert_equal(*foreign(depth, ask)) } }
  end

  def test_frames_are_right_after_the_heap_was_compacted
    ask = -> { [Site.frames(5), Site.frames_in_ruby(5)] }
    4.times do |round|
      assert_equal(*ask.call)
      run_as("def self.asked#{round} = [Castellan::CallSite.frames(5), Castellan::CallSite.frames_in_ruby(5)]; asked#{round}", __FILE__)
        .then { |in_c, in_ruby| assert_equal in_ruby, in_c }
      round.odd? && GC.respond_to?(:compact) ? GC.compact : GC.start
    end
  end

  def test_without_a_frame_of_the_application_there_is_no_site
    bare = run_as("Thread.new { Castellan::CallSite.current }", "#{Gem.path.first}/gems/x/x.rb")
    assert_nil bare.value
  end

  # In development, Rails calls Castellan.app through the middleware of Propshaft.
  def test_middleware_of_frameworks_and_monitoring_is_no_site
    %w[propshaft-1.3.2 sprockets-rails-3.5.2 web-console-4.2.1 sentry-ruby-5.28.0 datadog-2.1.0].each do |gem|
      path = "#{Gem.path.first}/gems/#{gem}/lib/x.rb"
      bare = run_as("Thread.new { [Castellan::CallSite.current, Castellan::CallSite.current_in_ruby] }", path)
      assert_equal [nil, nil], bare.value, gem
    end
  end

  def test_asking_makes_no_object_in_c
    skip "the C extension is not built" unless defined?(Castellan::NativeCallSite)
    10.times { Site.current }
    before = GC.stat(:total_allocated_objects)
    100.times { Site.current }
    assert_operator GC.stat(:total_allocated_objects) - before, :<=, 5
  end

  def test_compaction_leaves_sites_right
    GC.compact if GC.respond_to?(:compact)
    assert_equal "test/call_site_test.rb:#{__LINE__}", Site.location(Site.current)
  end

  private

  # Runs code as if it stood in a file, outside any method.
  def run_as(code, file) = eval(code, TOPLEVEL_BINDING, file, 1) # rubocop:disable Security/Eval
end
