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

AtomicScope::~AtomicScope() { End().IgnoreError(); }

absl::Status AtomicScope::End() {
  if (session_ == nullptr) return absl::OkStatus();
  const std::shared_ptr<Session::Impl> session = std::move(session_);
  session_ = nullptr;
  --session->atomic_depth;
  return session->accumulates() ? absl::OkStatus() : session->RunCurrent();
}

}  // namespace cleave::functional
