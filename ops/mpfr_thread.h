// MPFR keeps constants, spare memory and the range of exponents for each
// thread. A thread that computes by it gives the memory back as it ends,
// whoever started it: a host's threads, too. Numbers may be as small as
// exp(-1e15): the weights of a softmax are quotients of such. Internal to ops.

#ifndef CLEAVE_OPS_MPFR_THREAD_H_
#define CLEAVE_OPS_MPFR_THREAD_H_

namespace cleave {

// Called before a thread computes by MPFR, any number of times.
void PrepareThreadForMpfr();

}  // namespace cleave

#endif  // CLEAVE_OPS_MPFR_THREAD_H_
