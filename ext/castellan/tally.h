#ifndef CASTELLAN_TALLY_H
#define CASTELLAN_TALLY_H

#include "ruby.h"

/* Defines Castellan::NativeTally; lib/castellan/detect/tally.rb takes it in. */
void Init_tally(VALUE castellan);

/* Whether it is a Castellan::NativeTally. */
int castellan_tally_p(VALUE object);

/* What follows, until NativeTally#leave, is the walk through the association that a reflection of ActiveRecord's describes. */
void castellan_tally_walk(VALUE self, VALUE reflection);

/* Counts a statement whose binds stay as they are. A mistake in counting ends it and is kept: NativeTally#failure. */
void castellan_tally_tell(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds);

/* The same; what goes wrong is raised. */
void castellan_tally_count(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds);

#endif
