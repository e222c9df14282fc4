// Other programs, as the linker: found on $PATH, started and waited for.
//
//   const std::string ld = FindProgram("ld");
//   absl::StatusOr<pid_t> child = StartProgram({ld, "-o", ChildFile(0)},
//                                              {output}, messages);
//   const std::string failure = WaitForProgram(*child);

#ifndef CLEAVE_ENGINE_RUNTIME_PROGRAM_H_
#define CLEAVE_ENGINE_RUNTIME_PROGRAM_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cleave {

// The file that execvp would run; empty if there is none.
std::string FindProgram(const std::string& name);

// The descriptor that file `index` of those that it is given has in the child,
// and the path by which the child reaches it.
int ChildDescriptor(int index);
std::string ChildFile(int index);

// Starts arguments[0] with no input, with its output and errors in the
// descriptor `messages`, and with the descriptors `files` as ChildFile(0),
// ChildFile(1), .. No signal is blocked or ignored in it. By errno where it
// cannot be started.
absl::StatusOr<pid_t> StartProgram(const std::vector<std::string>& arguments,
                                   const std::vector<int>& files, int messages);

// Waits for its end: empty for success, else how it ended, as `exited with 1`.
std::string WaitForProgram(pid_t child);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_PROGRAM_H_
