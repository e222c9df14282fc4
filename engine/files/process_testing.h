// Processes that a test starts and kills, and folders that it makes: for tests
// of files that survive a process.

#ifndef CLEAVE_ENGINE_FILES_PROCESS_TESTING_H_
#define CLEAVE_ENGINE_FILES_PROCESS_TESTING_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace cleave {

// Starts `body` in a child process; its result is the exit status. The caller
// has one thread.
pid_t StartChild(absl::FunctionRef<int()> body);
// The exit status; -1 if a signal ended it.
int WaitForChild(pid_t child);
int RunInChild(absl::FunctionRef<int()> body);

// For a child: no file of this process may grow beyond so many bytes, as on a
// disk that is full; writers get an error.
void LimitFileSize(int64_t bytes);
// For a child: permissions hold for root, too.
void ObeyPermissions();

// A new, empty folder, removed when the program ends.
std::string NewFolder();
// The names in it, sorted.
std::vector<std::string> ListFolder(const std::string& folder);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_PROCESS_TESTING_H_
