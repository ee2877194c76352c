#ifndef CASTELLAN_RECORDING_H
#define CASTELLAN_RECORDING_H

#include "ruby.h"

/* Defines Castellan::NativeRecording; lib/castellan/recording.rb takes it in. */
void Init_recording(VALUE castellan);

/* @return the recording that is going on, or nil */
VALUE castellan_recording_current(void);

#endif
