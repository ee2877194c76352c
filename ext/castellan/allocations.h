#ifndef CASTELLAN_ALLOCATIONS_H
#define CASTELLAN_ALLOCATIONS_H

#include "ruby.h"

/* Defines Castellan::NativeAllocations; lib/castellan/profile/allocations.rb uses it. */
void Init_allocations(VALUE castellan);

#endif
