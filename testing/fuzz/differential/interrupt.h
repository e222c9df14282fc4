// Ctrl-C in a program that forks: the first SIGINT or SIGTERM asks for an end,
// which loops poll, the second one ends the process.
//
//   InstallInterrupts();
//   while (!Interrupted()) ..

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_INTERRUPT_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_INTERRUPT_H_

namespace cleave::fuzz {

// System calls that wait return with EINTR from then on.
void InstallInterrupts();
bool Interrupted();

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_INTERRUPT_H_
