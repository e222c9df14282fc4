#include "tools/command/interrupt.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <iostream>
#include <mutex>
#include <thread>
#include <utility>

#include "ops/check.h"
#include "tools/command/command_line.h"

namespace cleave {
namespace {

constexpr std::chrono::milliseconds kPatience{800};

std::atomic<bool> interrupted{false};
int wake[2];  // a pipe: a signal handler may write to it

struct Watch {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::function<void()> late;
};

// Never destroyed: the thread that watches is never joined.
Watch& TheWatch() {
  static Watch& watch = *new Watch;
  return watch;
}

void OnSignal(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
  constexpr char kNotice[] =
      "\ncleave: interrupted: what is done is printed; interrupt again to stop "
      "at once\n";
  // Nothing can be done where they fail.
  if (write(STDERR_FILENO, kNotice, sizeof(kNotice) - 1) < 0) return;
  if (write(wake[1], "", 1) < 0) return;
}

void Wait() {
  char byte = 0;
  if (read(wake[0], &byte, 1) != 1) return;
  Watch& watch = TheWatch();
  std::unique_lock<std::mutex> lock(watch.mutex);
  if (watch.changed.wait_for(lock, kPatience, [&] { return watch.ended; })) {
    return;
  }
  // With the lock: what prints otherwise waits for the end of the process.
  if (watch.late) watch.late();
  std::cout.flush();
  _exit(kExitInterrupted);
}

}  // namespace

void InstallInterrupts() {
  CLEAVE_CHECK(pipe(wake) == 0) << "pipe";
  std::thread(Wait).detach();
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
}

const std::atomic<bool>& Interrupted() { return interrupted; }

void SetLateReport(std::function<void()> late) {
  Watch& watch = TheWatch();
  const std::lock_guard<std::mutex> lock(watch.mutex);
  watch.late = std::move(late);
}

void InterruptsEnd() {
  Watch& watch = TheWatch();
  {
    const std::lock_guard<std::mutex> lock(watch.mutex);
    watch.ended = true;
  }
  watch.changed.notify_all();
}

}  // namespace cleave
