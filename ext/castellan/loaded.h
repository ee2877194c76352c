#ifndef CASTELLAN_LOADED_H
#define CASTELLAN_LOADED_H

#include "ruby.h"

/* Defines Castellan::Native.loaded_rows; lib/castellan/rows/active_record_rows/loaded_columns.rb uses it. */
void Init_loaded(VALUE castellan);

#endif
