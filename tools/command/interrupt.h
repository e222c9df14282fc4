// Interrupts (SIGINT, SIGTERM): the first one ends what runs, wherever it is,
// within a second, with what is done so far; the second one at once.
//
//   InstallInterrupts();
//   limits.cancelled = &Interrupted();   // ops/budget.h: polled everywhere
//   ...
//   InterruptsEnd();                     // the results are printed from here
//   on
//
// A stage that cannot be stopped within that second (the compiler of kernels)
// is left behind: the process prints what `late` prints and exits.

#ifndef CLEAVE_TOOLS_COMMAND_INTERRUPT_H_
#define CLEAVE_TOOLS_COMMAND_INTERRUPT_H_

#include <atomic>
#include <functional>

namespace cleave {

// The exit status of a run that was interrupted, as shells have it.
inline constexpr int kExitInterrupted = 130;

// Once, before threads are started.
void InstallInterrupts();
const std::atomic<bool>& Interrupted();

// Sets the report that a thread of its own prints where the work does not stop
// in time; then the process exits with kExitInterrupted.
void SetLateReport(std::function<void()> late);

// From here on no late report is made; waits for one that has begun.
void InterruptsEnd();

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_INTERRUPT_H_
