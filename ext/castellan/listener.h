#ifndef CASTELLAN_LISTENER_H
#define CASTELLAN_LISTENER_H

#include "ruby.h"

/* Defines Castellan::NativeRecording and Castellan::NativeListener; lib/castellan/recording.rb and
   lib/castellan/instrument/active_record_instrument.rb take them in. */
void Init_listener(VALUE castellan);

#endif
