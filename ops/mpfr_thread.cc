#include "ops/mpfr_thread.h"

#include <mpfr.h>

namespace cleave {
namespace {

constexpr mpfr_exp_t kLeastExponent = -(mpfr_exp_t{1} << 51);

struct MpfrThread {
  MpfrThread() { mpfr_set_emin(kLeastExponent); }
  ~MpfrThread() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

}  // namespace

void PrepareThreadForMpfr() {
  static thread_local const MpfrThread thread;
  static_cast<void>(thread);
}

}  // namespace cleave
