# frozen_string_literal: true

# Writes the Makefile of the C extension. Without a compiler the Makefile does nothing, so that the gem installs and
# uses the Ruby encoder.
#
#   CASTELLAN_EXT=require   fails instead; `rake compile` sets it
#   EXT_PEDANTIC=1          warnings are errors
#   EXT_SANITIZE=1          AddressSanitizer and UndefinedBehaviourSanitizer, for `rake asan`, and checks of buffers
begin
  raise "another Ruby than CRuby (#{RUBY_ENGINE})" unless RUBY_ENGINE == "ruby"

  require "mkmf" # exits where Ruby's headers are missing
  raise "the C compiler does not run: #{RbConfig::CONFIG["CC"]}" unless try_compile("int main(void) { return 0; }")
rescue LoadError, RuntimeError, SystemExit => error
  raise if ENV["CASTELLAN_EXT"] == "require"

  File.write("Makefile", "all install clean: ;\n")
  puts "Castellan's C encoder is not built; its Ruby encoder writes the same bytes, slower. The reason:", error.message
  exit
end

append_cflags(%w[-std=c99 -Wall -Wextra -Wno-unused-parameter -Wno-declaration-after-statement])
append_cflags("-fvisibility=hidden") # all but Init_castellan_ext: what calls within the extension is called at once
append_cflags(%w[-Werror]) if ENV["EXT_PEDANTIC"]

if ENV["EXT_SANITIZE"]
  # Without the stack: Ruby's exceptions jump over frames without notifying the sanitizer.
  flags = "-fsanitize=address,undefined --param asan-stack=0 -fno-omit-frame-pointer -g -O1"
  $CFLAGS << " #{flags} -DCASTELLAN_DEBUG"
  $LDFLAGS << " #{flags}"
else
  append_cflags("-O3")
end

have_library("dl", "dlopen")

create_makefile("castellan/castellan_ext")
