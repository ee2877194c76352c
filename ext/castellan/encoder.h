#ifndef CASTELLAN_ENCODER_H
#define CASTELLAN_ENCODER_H

#include "ruby.h"

/* Defines Castellan::Native; lib/castellan/serialize/native_encoder.rb and lib/castellan/rows/id_list.rb use it. */
void Init_encoder(VALUE castellan);

#endif
