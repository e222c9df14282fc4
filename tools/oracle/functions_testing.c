/* The functions of a user's library. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/embed/cleave.h"

static int64_t CountOf(const DLTensor* tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor->ndim; ++d) count *= tensor->shape[d];
  return count;
}

cleave_status* twice(void* context, const cleave_host_call* call) {
  const float* x = (const float*)call->inputs[0]->data;
  float* y = (float*)call->results[0]->data;
  (void)context;
  printf("what a library prints\n");
  for (int64_t i = 0; i < CountOf(call->inputs[0]); ++i) y[i] = 2 * x[i];
  return NULL;
}

/* Ends the process at a negative number. */
cleave_status* fragile(void* context, const cleave_host_call* call) {
  const float* x = (const float*)call->inputs[0]->data;
  for (int64_t i = 0; i < CountOf(call->inputs[0]); ++i) {
    if (x[i] < 0) abort();
  }
  return twice(context, call);
}

cleave_status* endless(void* context, const cleave_host_call* call) {
  (void)context;
  (void)call;
  for (;;) sleep(1);
}

/* A status that nobody can read: the library was linked with no Cleave. */
cleave_status* refusing(void* context, const cleave_host_call* call) {
  static int status;
  (void)context;
  (void)call;
  return (cleave_status*)&status;
}
