# frozen_string_literal: true

# Writes the Makefile of the C extension: one that does nothing where it cannot be compiled, so that the gem installs all the same and
# documents are written by the Ruby encoder.
#
#   CASTELLAN_EXT=require   fails instead; `rake compile` sets it
#   EXT_PEDANTIC=1          warnings are errors
#   EXT_SANITIZE=1          AddressSanitizer and UndefinedBehaviourSanitizer, for `rake asan`, and checks of what is written where
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
  # Not the stack: Ruby's exceptions jump over our frames without telling the sanitizer, which then sees their remains.
  flags = "-fsanitize=address,undefined --param asan-stack=0 -fno-omit-frame-pointer -g -O1"
  $CFLAGS << " #{flags} -DCASTELLAN_DEBUG"
  $LDFLAGS << " #{flags}"
else
  append_cflags("-O3")
end

have_library("dl", "dlopen")

create_makefile("castellan/castellan_ext")
