#include "ops/mpfr_cache.h"

#include <mpfr.h>

namespace cleave {
namespace {

struct FreesCache {
  // A constructor, so that the destructor is registered where it is first used.
  FreesCache() {}
  ~FreesCache() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

}  // namespace

void FreeMpfrCacheWithThread() {
  static thread_local const FreesCache frees_cache;
  static_cast<void>(frees_cache);
}

}  // namespace cleave
