#ifndef CASTELLAN_CALL_SITE_H
#define CASTELLAN_CALL_SITE_H

#include "ruby.h"

/* Defines Castellan::NativeCallSite, which lib/castellan/call_site.rb extends. */
void Init_call_site(VALUE castellan);

/* Returns the nearest frame of the application as a number, or nil. `call_site` is Castellan::CallSite. */
VALUE castellan_call_site(VALUE call_site);

/* Returns at most `most` of the application's frames as numbers, innermost first, in a frozen Array that
 * is the same object for the same frames. */
VALUE castellan_call_site_frames(VALUE call_site, long most);

#endif
