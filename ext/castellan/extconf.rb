# frozen_string_literal: true

# Writes the Makefile of the C extension. Called by the Rakefile beside it, which also says what happens without a compiler.
#
#   EXT_PEDANTIC=1    warnings are errors
#   EXT_SANITIZE=1    AddressSanitizer and UndefinedBehaviourSanitizer, for `rake asan`, and checks of what is written where
require "mkmf"

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
