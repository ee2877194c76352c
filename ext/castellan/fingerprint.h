#ifndef CASTELLAN_FINGERPRINT_H
#define CASTELLAN_FINGERPRINT_H

#include "ruby.h"

/* Defines Castellan::NativeFingerprint; lib/castellan/fingerprint.rb takes it in. */
void Init_fingerprint(VALUE castellan);

#endif
