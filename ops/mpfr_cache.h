// MPFR keeps constants and spare memory for each thread. A thread that computes
// by it gives them back as it ends, whoever started it: a host's threads, too.
// Internal to ops.

#ifndef CLEAVE_OPS_MPFR_CACHE_H_
#define CLEAVE_OPS_MPFR_CACHE_H_

namespace cleave {

// Called before a thread computes by MPFR, any number of times.
void FreeMpfrCacheWithThread();

}  // namespace cleave

#endif  // CLEAVE_OPS_MPFR_CACHE_H_
