#include "engine/files/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

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

void RunOnThreads(int threads, const std::function<void()>& work) {
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) {
    std::optional<std::thread> helper = StartThread(work);
    if (!helper.has_value()) break;
    helpers.push_back(*std::move(helper));
  }
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace cleave
