// Threads of the library's own, in a host that may not expect any.
//
//   RunOnThreads(UsableCores(), [&] { while (TakeOne()) Work(); });

#ifndef CLEAVE_ENGINE_FILES_THREADS_H_
#define CLEAVE_ENGINE_FILES_THREADS_H_

#include <functional>
#include <optional>
#include <thread>

namespace cleave {

// The cores that this process may use, at least 1: as many as its affinity
// mask, as a container's, leaves.
int UsableCores();

// Runs `body` on a new thread; nullopt where the system grants none. The host's
// signal handlers do not run there, but for those of faults, which belong to
// the thread at fault, and of profilers.
std::optional<std::thread> StartThread(std::function<void()> body);

// Runs `work` on this thread and on `threads` - 1 others, or as many of them as
// the system grants, and returns when all have ended.
void RunOnThreads(int threads, const std::function<void()>& work);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_THREADS_H_
