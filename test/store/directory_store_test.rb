# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "tmpdir"
require_relative "store_contract"

class DirectoryStoreTest < Minitest::Test
  include StoreContract

  def teardown
    FileUtils.rm_rf(@parent)
    super
  end

  def test_processes_read_the_values_of_each_other
    store.write_multi({ key("a") => "1" }, ttl: 60)
    pid = fork do
      mine = Castellan::Store::DirectoryStore.new(@directory)
      mine.write_multi({ key("b") => mine.read_multi([key("a")])[key("a")] })
      20.times { mine.increment(key("n")) }
      exit!(0)
    end
    20.times { store.increment(key("n")) }
    Process.wait(pid)
    assert_equal({ key("b") => "1", key("n") => "40" }, store.read_multi([key("b"), key("n")]))
  end

  def test_its_bytes_are_bounded_and_the_oldest_values_are_evicted
    small = Castellan::Store::DirectoryStore.new(@directory, max_bytesize: 10_000)
    200.times { |number| assert_equal ["k#{number}"], small.write_multi({ "k#{number}" => "x" * 300 }) }
    assert_operator small.bytesize, :<=, 10_000
    found = small.read_multi(Array.new(200) { |number| "k#{number}" }).keys
    assert_equal "k199", found.last
    assert_equal found, Array.new(200) { |number| "k#{number}" }.last(found.size)
  end

  def test_the_bound_applies_to_two_writers
    stores = Array.new(2) { Castellan::Store::DirectoryStore.new(@directory, max_bytesize: 10_000) }
    100.times do |number|
      stores.each_with_index { |one, index| one.write_multi({ "#{index}-#{number % 40}" => "x" * (number % 5) * 100 }) }
    end
    assert_operator store.bytesize, :<=, 10_000
  end

  def test_a_write_lists_no_files_while_there_is_room
    costs = [1, 200].map do |files|
      files.times { |number| store.write_multi({ "#{files}-#{number}" => "1" }, ttl: 60) }
      before = GC.stat(:total_allocated_objects)
      store.write_multi({ "new" => "1" }, ttl: 60)
      GC.stat(:total_allocated_objects) - before
    end
    assert_in_delta(*costs, 20)
  end

  def test_a_value_is_there_while_it_is_replaced
    store.increment("n")
    pid = fork do
      2_000.times { store.increment("n") }
      exit!(0)
    end
    missing = store.read_multi(["n"]).empty? until missing || Process.wait(pid, Process::WNOHANG)
    refute missing
    assert_equal({ "n" => "2001" }, store.read_multi(["n"]))
  end

  def test_a_failed_write_keeps_the_old_value_and_leaves_no_file
    store.write_multi({ "a" => "old" })
    _, status = Process.wait2(fork do
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, 1_000)
      store.write_multi({ "a" => "x" * 5_000 })
    rescue Castellan::StoreError
      exit!(0)
    end)
    assert_predicate status, :success?
    assert_equal({ "a" => "old" }, store.read_multi(["a"]))
    assert_empty Dir[File.join(@directory, "*.part")]
  end

  def test_a_value_that_is_too_large_deletes_the_old_one
    small = Castellan::Store::DirectoryStore.new(@directory, max_bytesize: 10_000)
    small.write_multi({ "a" => "old" })
    assert_equal ["b"], small.write_multi({ "a" => "x" * 2_000, "b" => "1" })
    assert_equal({ "b" => "1" }, small.read_multi(%w[a b]))
  end

  def test_expired_values_are_evicted_first
    small = Castellan::Store::DirectoryStore.new(@directory, max_bytesize: 10_000)
    small.write_multi({ "keep" => "x" * 1_000 })
    5.times { |number| small.write_multi({ "ends#{number}" => "x" * 1_000 }, ttl: 5) }
    Castellan::Clock.stub(:now, Time.now + 6) do
      4.times { |number| small.write_multi({ "new#{number}" => "x" * 1_000 }) }
      assert_equal %w[keep new0 new3], small.read_multi(%w[keep ends0 ends4 new0 new3]).keys
    end
  end

  def test_only_its_user_may_read_it
    store.write_multi({ "a" => "1" })
    assert_equal "700", File.stat(@directory).mode.to_s(8)[-3..]
    modes = Dir.children(@directory).map { |file| File.stat(File.join(@directory, file)).mode.to_s(8)[-3..] }
    assert_equal %w[600], modes.uniq
  end

  def test_a_world_writable_directory_raises
    Dir.mktmpdir do |directory|
      File.chmod(0o777, directory)
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::DirectoryStore.new(directory) }
      assert_includes error.message, "can be written by everybody"
    end
  end

  def test_an_invalid_option_raises_and_creates_nothing
    store
    before = Dir.children(Dir.pwd)
    { nil => "got nil", "" => 'got ""', Pathname("") => "got an instance of Pathname", 3 => "got 3" }.each do |wrong, message|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::DirectoryStore.new(wrong) }
      assert_equal "Castellan::Store::DirectoryStore needs the path of a directory, #{message}; write for example " \
                   "Castellan::Store::DirectoryStore.new(\"tmp/castellan\")", error.message
    end
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::DirectoryStore.new(@directory, max_bytesize: "64") }
    assert_includes error.message, "DirectoryStore max_bytesize: must be a whole number of bytes above 0, got \"64\"; write for example "
    assert_equal before, Dir.children(Dir.pwd)
    assert Castellan::Store::DirectoryStore.new(Pathname(@directory))
  end

  def test_a_directory_that_cannot_be_created_raises
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::DirectoryStore.new(File.join(__FILE__, "x")) }
    assert_includes error.message, "cannot be made"
  end

  def test_foreign_and_incomplete_files_are_ignored
    store.write_multi({ "a" => "1" })
    file = Dir[File.join(@directory, "*.entry")].first
    whole = File.binread(file)
    ["", "CD", "junk" * 100, *(1...whole.bytesize).map { |size| whole[0, size] }, "#{whole}x"].each do |bytes|
      File.binwrite(file, bytes)
      assert_empty store.read_multi(%w[a])
      assert_operator store.bytesize, :>=, 0
    end
    assert_equal ["a"], store.write_multi({ "a" => "2" }, if_absent: true)
  end

  def test_the_bound_applies_in_a_directory_named_like_a_glob
    small = Castellan::Store::DirectoryStore.new(File.join(File.dirname(store && @directory), "[a]*{b}?"), max_bytesize: 10_000)
    50.times { |number| small.write_multi({ "k#{number}" => "x" * 1_000 }) }
    assert_includes 1_000..10_000, small.bytesize
    assert_equal({ "k49" => "x" * 1_000 }, small.read_multi(%w[k0 k49]))
  end

  def test_a_symbolic_link_is_not_followed
    File.write(other = "#{store && @directory}.txt", "of somebody else")
    store.write_multi({ "a" => "1" })
    file = Dir[File.join(@directory, "*.entry")].first
    FileUtils.mv(file, "#{file}.copy")
    File.symlink("#{file}.copy", file)
    assert_empty store.read_multi(%w[a])
    assert_equal ["a"], store.write_multi({ "a" => "2" })
    assert_equal({ "a" => "2" }, store.read_multi(%w[a]))
    File.delete(lock = File.join(@directory, "lock"))
    File.symlink(other, lock)
    assert_raises(Castellan::StoreError) { store.write_multi({ "a" => "3" }) }
    assert_equal "of somebody else", File.read(other)
  end

  def test_a_deleted_directory_is_made_again
    store.write_multi({ "a" => "1" })
    FileUtils.rm_rf(@directory)
    assert_empty store.read_multi(%w[a])
    assert_equal %w[a], store.write_multi({ "a" => "1" })
    assert_equal({ "a" => "1" }, store.read_multi(%w[a]))
    assert_equal 0o700, File.stat(@directory).mode & 0o777
  end

  def test_a_directory_that_cannot_be_made_again_is_a_store_error
    store.write_multi({ "a" => "1" })
    FileUtils.rm_rf(@directory)
    File.write(@directory, "a file")
    assert_raises(Castellan::StoreError) { store.write_multi({ "a" => "1" }) }
  end

  private

  def store
    @directory ||= File.join(Dir.mktmpdir, "store").tap { |path| @parent = File.dirname(path) }
    @store ||= Castellan::Store::DirectoryStore.new(@directory)
  end
end
