#ifndef CASTELLAN_LOG_H
#define CASTELLAN_LOG_H

#include "ruby.h"

/* Defines Castellan::NativeLog; lib/castellan/profile/recorder.rb takes it in. */
void Init_log(VALUE castellan);

/* Whether it is a Castellan::NativeLog. */
int castellan_log_p(VALUE object);

/* Counts and keeps a statement. A mistake in here is kept, too, and raised nowhere. */
void castellan_log_add(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE rows, VALUE binds);

#endif
