#include "engine/runtime/messages.h"

#include <cstdio>
#include <mutex>

namespace cleave {
namespace {

struct Sink {
  std::mutex mutex;
  MessageSink function = nullptr;
  void* context = nullptr;
};

// Lives as long as the process: kernels may print while it ends.
Sink& TheSink() {
  static auto* const sink = new Sink;
  return *sink;
}

}  // namespace

void SetMessageSink(MessageSink sink, void* context) {
  const std::lock_guard<std::mutex> lock(TheSink().mutex);
  TheSink().function = sink;
  TheSink().context = context;
}

void Say(const std::string& message) {
  const std::lock_guard<std::mutex> lock(TheSink().mutex);
  if (TheSink().function != nullptr) {
    TheSink().function(TheSink().context, message.c_str());
  } else {
    std::fprintf(stderr, "cleave: %s\n", message.c_str());
  }
}

}  // namespace cleave
