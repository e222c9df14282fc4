#include "engine/eager/atomic.h"

#include "engine/eager/session_impl.h"
#include "engine/eager/trace_scope.h"

namespace cleave::functional {

AtomicScope::AtomicScope() {
  Session* const session = CurrentSession();
  if (session == nullptr || InTrace()) return;
  session_ = SessionAccess::ImplOf(*session);
  ++session_->atomic_depth;
}

AtomicScope::~AtomicScope() { End(/*tell=*/false).IgnoreError(); }

absl::Status AtomicScope::End() { return End(/*tell=*/true); }

absl::Status AtomicScope::End(bool tell) {
  if (session_ == nullptr) return absl::OkStatus();
  const std::shared_ptr<Session::Impl> session = std::move(session_);
  session_ = nullptr;
  --session->atomic_depth;
  if (session->accumulates()) return absl::OkStatus();
  return tell ? session->RunAndTell() : session->RunCurrent();
}

}  // namespace cleave::functional
