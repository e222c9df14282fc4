// Drives the C interface with random calls: right ones, and wrong ones.
//
//   fuzz_abi --seed 1 --seconds 600 [--trace]
//
// Prints the seed, the calls that it made of each function, and how many of
// them failed; with --trace each call before it is made. A call that breaks a
// promise of cleave.h ends it with status 1. AddressSanitizer sees the rest.

#include "engine/embed/fuzz_abi.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  uint64_t seed = 1;
  double seconds = 10;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seconds") == 0) {
      seconds = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr,
                   "usage: fuzz_abi [--seed N] [--seconds N] [--trace]\n");
      return 2;
    }
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int64_t steps = 0;
  {
    cleave::fuzz_abi::Fuzzer fuzzer(seed, trace);
    for (; std::chrono::steady_clock::now() < end; ++steps) fuzzer.Step();
    for (const auto& [name, counts] : fuzzer.counts()) {
      std::printf("%-18s %8lld calls %8lld failed\n", name.c_str(),
                  static_cast<long long>(counts.first),
                  static_cast<long long>(counts.second));
      // A fuzzer whose calls all fail tests the first check of each alone.
      // Calls without a handle are to fail.
      if (counts.first > 1000 && counts.second == counts.first &&
          name.find(" of null") == std::string::npos) {
        cleave::fuzz_abi::Broken(name + " never succeeds");
      }
    }
  }
  std::printf("%lld steps\n", static_cast<long long>(steps));
  return 0;
}
