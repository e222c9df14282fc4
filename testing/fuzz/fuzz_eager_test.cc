// Runs programs of eager tensors that make mistakes (eager_program.h).
//
//   bazel-bin/testing/fuzz/fuzz_eager_test                 # a few seconds
//   bazel-bin/testing/fuzz/fuzz_eager_test --seconds 600   # for so long
//   bazel-bin/testing/fuzz/fuzz_eager_test --seed 17       # that program alone
//
// A program follows from its seed. Where one crashes, its seed is on stderr.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "testing/fuzz/eager_program.h"

namespace cleave::functional {
namespace {

constexpr uint64_t kShortRun = 150;  // programs

volatile uint64_t running_seed = 0;

extern "C" void TellSeed(int signal) {
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "fuzz_eager: seed %llu\n",
                                 static_cast<unsigned long long>(running_seed));
  if (write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

TEST(FuzzEager, NothingCrashesAndNoDataIsLost) {
  int64_t seconds = 0;
  uint64_t first = 1, last = kShortRun;
  const std::vector<std::string> arguments = testing::internal::GetArgvs();
  for (size_t i = 1; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "--seconds") {
      seconds = std::atoll(arguments[i + 1].c_str());
      last = std::numeric_limits<uint64_t>::max();
    }
    if (arguments[i] == "--first") {
      first = std::strtoull(arguments[i + 1].c_str(), nullptr, 10);
    }
    if (arguments[i] == "--seed") {
      first = last = std::strtoull(arguments[i + 1].c_str(), nullptr, 10);
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, TellSeed);
  }
  const auto begin = std::chrono::steady_clock::now();
  uint64_t programs = 0;
  for (uint64_t seed = first; seed <= last; ++seed, ++programs) {
    running_seed = seed;
    SCOPED_TRACE("--seed " + std::to_string(seed));
    try {
      RunEagerProgram(seed);
    } catch (const std::exception& exception) {
      ADD_FAILURE() << "an exception left the API: " << exception.what();
    }
    if (HasFailure()) break;
    if (seconds > 0 && std::chrono::steady_clock::now() - begin >
                           std::chrono::seconds(seconds)) {
      break;
    }
  }
  std::cout << programs << " programs\n";
}

}  // namespace
}  // namespace cleave::functional
