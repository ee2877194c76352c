/*
 * Initializes the parts of the C extension.
 */
#include "call_site.h"
#include "internal.h"

RUBY_FUNC_EXPORTED void Init_castellan_ext(void)
{
    VALUE castellan = rb_define_module("Castellan");
    Init_encoder(castellan);
    Init_call_site(castellan);
}
