#include "engine/files/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace cleave {

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return std::max(1, CPU_COUNT(&cores));
  }
  // More cores than a cpu_set_t names.
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<std::thread> StartThread(std::function<void()> body) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int signal :
       {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP}) {
    sigdelset(&blocked, signal);
  }
  // A thread begins with the mask of the one that starts it.
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::optional<std::thread> started;
  try {
    started.emplace(std::move(body));
  } catch (const std::system_error&) {
    started.reset();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace cleave
