#ifndef CASTELLAN_CALL_SITE_H
#define CASTELLAN_CALL_SITE_H

#include "ruby.h"

/* Defines Castellan::NativeCallSite; lib/castellan/call_site.rb takes it in. */
void Init_call_site(VALUE castellan);

/* The nearest frame of the application as a number, or nil. `call_site` is Castellan::CallSite. */
VALUE castellan_call_site(VALUE call_site);

/* The application's frames as numbers, innermost first, at most `most`: a frozen Array, the same one for the same frames. */
VALUE castellan_call_site_frames(VALUE call_site, long most);

#endif
