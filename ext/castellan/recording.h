#ifndef CASTELLAN_RECORDING_H
#define CASTELLAN_RECORDING_H

#include "ruby.h"

/* Defines Castellan::NativeRecording; lib/castellan/recording.rb takes it in. */
void Init_recording(VALUE castellan);

/* @return the recording that is going on, or nil */
VALUE castellan_recording_current(void);

/* @return whom an instrument tells of a statement, or nil: Recording#listener of the one that is going on */
VALUE castellan_recording_listener(void);

/* Whether what is current is kept here and not by Ruby; known when Init_recording was called. */
int castellan_recording_native_p(void);

/* Does the work while the recording is the current one; not where Ruby keeps it. @return what the work returns */
VALUE castellan_recording_resume(VALUE recording, VALUE (*work)(VALUE), VALUE given);

#endif
