#include "testing/fuzz/differential/interrupt.h"

#include <csignal>

namespace cleave::fuzz {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void OnInterrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void InstallInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  for (const int signal : {SIGINT, SIGTERM}) {
    sigaction(signal, &action, nullptr);
  }
}

bool Interrupted() { return interrupted != 0; }

}  // namespace cleave::fuzz
