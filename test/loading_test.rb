# frozen_string_literal: true

require "test_helper"
require "open3"

# Each room can be the first that is named, and the first that is required, in a process that shows warnings.
class LoadingTest < Minitest::Test
  SCRIPT = <<~RUBY
    require "castellan"
    names = Castellan.constants.select { |name| Castellan.autoload?(name) }.map { |name| -> { Castellan.const_get(name) } }
    files = Dir[File.join(ARGV.first, "castellan/*.rb")].map { |path| -> { require path } }
    (names + files).each do |first|
      Process.wait(fork { first.call; exit!(true) })
      print $?.success? ? "." : "failed"
    end
  RUBY

  def test_each_room_loads_first_without_a_warning
    lib = File.join(ROOT, "lib")
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "-w", "-I#{lib}", "-e", SCRIPT, lib)
    assert_predicate status, :success?
    assert_match(/\A\.{40,}\z/, output)
  end
end
