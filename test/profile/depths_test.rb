# frozen_string_literal: true

require "test_helper"
require "castellan/instrument/threads"
require "English"
require "memory_profiler"
require "profile/profile_world"

# Profiles that go deeper than SQL: memory and samples. The response stays, the SQL is there beside it, and two are never mixed.
class ProfileDepthsTest < Minitest::Test
  include ProfileWorld

  Profile = Castellan::Profile

  def strings = Array.new(500) { |number| "a text that is longer than fits into an object #{number}" }

  def test_memory_by_gem_file_line_and_class
    kept = []
    profiled { kept.concat(strings) && careless && "ok" }
    assert_equal "ok", get("/?profile=memory").body
    memory = result.memory
    assert_operator memory[:total_allocated], :>=, 500
    assert_operator memory[:total_retained], :>=, 500
    line = memory[:by_line].find { |row| row[:name] == "test/profile/depths_test.rb:#{method(:strings).source_location.last}" }
    assert_operator line[:allocated], :>=, 500
    assert_operator line[:allocated_bytes], :>=, 500 * 60
    assert_operator line[:retained], :>=, 500
    assert_includes memory[:by_class].map { |row| row[:name] }, "String"
    assert(memory[:by_gem].any? { |row| row[:name].start_with?("activerecord-") })
    assert_equal memory[:by_file].map { |row| row[:allocated_bytes] }, memory[:by_file].map { |row| row[:allocated_bytes] }.sort.reverse
    assert_equal ["memory", 1 + BOOKS, 1], [result.depth, result.queries.size, result.findings.size]
  end

  def test_an_application_that_refuses_unknown_parameters_is_profiled_by_the_parameter
    shelves = Class.new(Castellan::Resource) do
      model Book
      type "books"
      attributes :title
      page size: 1
    end
    profiled(Castellan.app { resource shelves })
    plain = get("/books?page[size]=1")
    response = get("/books?page[size]=1&profile=memory")
    assert_equal [200, 200, plain.body], [plain.status, response.status, response.body]
    assert_equal "memory", result.depth
    assert_equal 400, get("/books?profil=memory").status
  end

  def test_a_filter_that_a_middleware_adds_also_counts_in_a_profiled_request
    shelves = Class.new(Castellan::Resource) do
      model Book
      type "books"
      filter :id
    end
    app = Castellan.app { resource shelves }
    profiled(->(env) { app.call(env.merge("QUERY_STRING" => "#{env["QUERY_STRING"]}&filter[id]=0")) })
    assert_equal [200, []], get("/books?profile=memory").then { |response| [response.status, JSON.parse(response.body)["data"]] }
  end

  def test_memory_in_a_folder_of_the_application_that_is_named_as_ours_is
    file = File.join(@directory, "lib/castellan/profile/pay.rb")
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, "TEXTS = -> { Array.new(500) { |number| 'a text of an application, number ' + number.to_s } }\n")
    load(file, pay = Module.new)
    profiled { pay::TEXTS.call.size.to_s }
    get("/?profile=memory")
    files = result.memory[:by_file].to_h { |row| row.values_at(:name, :allocated) }
    assert_operator files.fetch(file), :>=, 500
    assert_empty files.keys.grep(%r{\Alib/castellan/(?:profile|detect|instrument)/})
  end

  # memory_profiler lists the most objects and the most bytes apart.
  def test_a_line_with_few_large_objects_has_their_number
    lines = Array.new(60) { "3.times { String.new }" } << "String.new(capacity: 1_000_000)"
    work = eval("-> {\n#{lines.join("\n")}\n}", TOPLEVEL_BINDING, "lines.rb") # rubocop:disable Security/Eval, Style/EvalWithLocation
    large = Profile.run(depth: :memory, &work).memory[:by_line].first
    assert_equal "lines.rb:#{lines.size + 1}", large[:name]
    assert_operator large[:allocated_bytes], :>, 1_000_000
    assert_includes 1..2, large[:allocated]
  end

  def test_memory_totals_agree_with_memory_profilers
    work = -> { strings.map(&:upcase).join.size }
    work.call
    theirs = MemoryProfiler.report(top: 50, &work)
    ours = Profile.run(depth: :memory, &work).memory
    assert_in_delta theirs.total_allocated, ours[:total_allocated], 20
    assert_in_delta theirs.total_allocated_memsize, ours[:total_allocated_bytes], 2_000
    assert_operator (theirs.total_retained - ours[:total_retained]).abs, :<=, 20
  end

  def test_a_profile_that_is_interrupted_while_it_starts_lets_the_next_one_run
    interrupt = TracePoint.new(:call) do |point|
      throw :interrupted if point.method_id == :start && point.self.is_a?(MemoryProfiler::Reporter)
    end
    catch(:interrupted) { interrupt.enable { Profile.run(depth: :memory) { flunk } } }
    assert_operator Profile.run(depth: :memory) { strings }.memory[:total_allocated], :>=, 500
  end

  # A loop that is nothing but this line.
  def hot(times)
    number = 0
    number += 1 while number < times
    number
  end

  def test_samples_of_cpu_attribute_a_hot_loop_to_its_line
    flame = Profile.run(depth: "cpu") { hot(30_000_000) }.flame
    assert_operator share(flame, "test/profile/depths_test.rb", method(:hot).source_location.last + 2), :>=, 0.95
    assert_operator flame["profiles"].first["samples"].size, :>, 0
  end

  def wait = sleep(0.2)

  def test_samples_of_wall_time_include_waiting
    profiled { wait && "ok" }
    get("/?profile=wall")
    flame = result.flame
    waiting = flame["shared"]["frames"].index { |frame| frame["name"].end_with?("#wait") }
    stacks = flame["profiles"].first.values_at("samples", "weights").transpose
    waited = stacks.sum { |stack, weight| stack.include?(waiting) ? weight : 0 }
    assert_operator waited, :>, 150_000_000
    assert_includes waited..(result.duration_ns * 1.5), flame["profiles"].first["endValue"]
  end

  def test_samples_of_objects_are_at_their_allocation
    flame = Profile.run(depth: "objects") { 40.times { strings } }.flame
    assert_operator share(flame, "test/profile/depths_test.rb", method(:strings).source_location.last), :>=, 0.9
    assert_in_delta 40_000, flame["profiles"].first["endValue"], 10_000 # each text has a number, which is a text before that
  end

  def test_a_flame_graph_begins_with_the_application
    profiled { hot(3_000_000) }
    get("/?profile=cpu")
    flame = result.flame
    first = flame["profiles"].first["samples"].map { |stack| flame["shared"]["frames"][stack.first] }.uniq
    refute_includes first.map { |frame| frame["name"] }.join, "Castellan"
    assert_equal "https://www.speedscope.app/file-format-schema.json", flame["$schema"]
    assert_equal flame["profiles"].first["weights"].sum, flame["profiles"].first["endValue"]
  end

  def test_sql_is_recorded_together_with_samples
    profiled { careless }
    get("/?profile=wall")
    assert_equal [1 + BOOKS, 1, "wall"], [result.queries.size, result.findings.size, result.depth]
  end

  # Another thread works hard all the while; none of it may be in the samples.
  def test_samples_exclude_other_threads
    stop = false
    other = Thread.new { Array.new(10) { |number| number.to_s } until stop }
    %w[cpu wall objects].each do |depth|
      flame = Profile.run(depth: depth) { hot(5_000_000) && 5.times { strings } }.flame
      lines = flame["shared"]["frames"].select { |frame| frame["file"] == "test/profile/depths_test.rb" }.map { |frame| frame["line"] }
      refute_includes lines, __LINE__ - 4, depth
    end
  ensure
    stop = true
    other&.join
  end

  def test_the_second_of_two_simultaneous_profiles_records_only_sql
    inside = Queue.new
    leave = Queue.new
    profiled(lambda do |env|
      env["PATH_INFO"] == "/first" && inside.push(true) && leave.pop
      [200, {}, [env["PATH_INFO"]]]
    end)
    first = Thread.new { get("/first?profile=cpu").body }
    inside.pop
    assert_equal "/second", get("/second?profile=memory").body
    leave << true
    assert_equal "/first", first.value
    second, first = results.partition { |one| one.path == "/second" }.map(&:first)
    assert_nil second.memory
    assert_match(/another profile of memory or samples is running/, second.notes.first)
    refute_nil first.flame
    get("/third?profile=memory")
    refute_nil result.memory
  end

  def test_a_profile_within_another_records_sql
    inner = nil
    outer = Profile.run(depth: "memory") { inner = Profile.run(depth: "cpu") { Book.first } }
    assert_equal [nil, 1, ["another profile of memory or samples is running: SQL was recorded; repeat the request"]],
                 [inner.flame, inner.queries.size, inner.notes]
    refute_nil outer.memory
  end

  def test_a_profile_whose_work_raises_lets_the_next_one_run
    assert_raises(KeyError) { Profile.run(depth: "cpu") { raise KeyError } }
    assert_raises(KeyError) { Profile.run(depth: "memory") { raise KeyError } }
    profiled { raise KeyError }
    assert_raises(KeyError) { get("/?profile=memory") }
    assert_empty Profile.run(depth: "memory") { strings }.notes
  end

  def test_another_active_sampler_is_reported
    require "stackprof"
    StackProf.start(mode: :wall, interval: 100_000)
    run = Profile.run(depth: "cpu") { hot(10) }
    assert_nil run.flame
    assert_match(/something else of this process samples/, run.notes.first)
    assert StackProf.running?
  ensure
    StackProf.stop
  end

  def test_a_gem_that_is_missing_is_named
    program = <<~RUBY
      require "castellan/profile"
      puts Castellan::Profile.run(depth: "memory") { 1 }.notes, Castellan::Profile.run(depth: "cpu") { 1 }.notes
    RUBY
    output = Bundler.with_unbundled_env do
      IO.popen([{ "GEM_HOME" => @directory, "GEM_PATH" => @directory }, RbConfig.ruby, "-I#{ROOT}/lib", "-e", program], &:read)
    end
    assert_match(/memory needs the gem memory_profiler.*samples need the gem stackprof/m, output)
  end

  def test_a_forked_process_can_be_profiled_while_its_parent_is
    Profile.run(depth: "cpu") do
      pid = fork do
        exit!(Profile::Sampling.begin("memory").notes.empty? ? 0 : 1)
      end
      Process.wait(pid)
      assert_predicate $CHILD_STATUS, :success?
    end
  end

  private

  # @return [Float] the share of samples on whose stack this line is
  def share(flame, file, line)
    frames = flame["shared"]["frames"]
    pairs = flame["profiles"].first.values_at("samples", "weights").transpose
    here = pairs.select { |stack, _| stack.any? { |index| frames[index].values_at("file", "line") == [file, line] } }
    here.sum(&:last) / pairs.sum(&:last).to_f
  end
end
