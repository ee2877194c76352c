#ifndef CASTELLAN_LISTENER_H
#define CASTELLAN_LISTENER_H

#include "ruby.h"

/* Defines Castellan::NativeListener; lib/castellan/instrument/active_record_instrument.rb takes it in. */
void Init_listener(VALUE castellan);

#endif
