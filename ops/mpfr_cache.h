// MPFR keeps constants and spare memory for each thread. A thread that computes
// by it gives them back as it ends, whoever started it: a host's threads, too.
// Internal to ops.

#ifndef CLEAVE_OPS_MPFR_CACHE_H_
#define CLEAVE_OPS_MPFR_CACHE_H_

#include <mpfr.h>

namespace cleave {

// Called before a thread computes by MPFR, any number of times.
inline void FreeMpfrCacheWithThread() {
  struct FreesCache {
    // A constructor, so that the destructor is registered here.
    FreesCache() {}
    ~FreesCache() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
  };
  static thread_local const FreesCache frees_cache;
  static_cast<void>(frees_cache);
}

}  // namespace cleave

#endif  // CLEAVE_OPS_MPFR_CACHE_H_
