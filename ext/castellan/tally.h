#ifndef CASTELLAN_TALLY_H
#define CASTELLAN_TALLY_H

#include "ruby.h"

/* Defines Castellan::NativeTally and Castellan::NativeListener; lib/castellan/detect/tally.rb and
   lib/castellan/instrument/active_record_instrument.rb take them in. */
void Init_tally(VALUE castellan);

#endif
