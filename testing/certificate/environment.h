// Environment: what a verdict depends on besides the rule and the samples: the
// code of the engine and the checker, what compiled it, the libraries, the CPU.
//
//   Environment here = ThisEnvironment();
//   here.libm;   // "glibc 2.36"
//   here.Id();   // "5f0c1d2e8a47": short, as names in a file

#ifndef CLEAVE_TESTING_CERTIFICATE_ENVIRONMENT_H_
#define CLEAVE_TESTING_CERTIFICATE_ENVIRONMENT_H_

#include <string>

namespace cleave {

struct Environment {
  std::string engine;    // SHA-256 of the sources of the engine and the checker
  std::string compiler;  // "gcc 12.2.0, optimized"
  std::string libm;      // "glibc 2.36"
  std::string mpfr;      // "4.2.0"
  std::string cpu;       // "x86-64: avx avx2 fma"
  // For L6: the generator of code, its Halide, the vectors, the cores. Empty
  // where no kernels are checked.
  std::string kernels;

  // All of it, a line for each.
  std::string ToString() const;
  // 12 hexadecimal digits of its hash.
  std::string Id() const;
  friend bool operator==(const Environment& a, const Environment& b) {
    return a.engine == b.engine && a.compiler == b.compiler &&
           a.libm == b.libm && a.mpfr == b.mpfr && a.cpu == b.cpu &&
           a.kernels == b.kernels;
  }
};

// The environment of this program on this machine, without L6.
Environment ThisEnvironment();

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_ENVIRONMENT_H_
