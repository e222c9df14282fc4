// Threads of the library's own, in a host that may not expect any.
//
//   std::vector<std::thread> helpers;
//   for (int i = 1; i < UsableCores(); ++i) {
//     std::optional<std::thread> helper = StartThread([&] { Work(); });
//     if (!helper.has_value()) break;
//     helpers.push_back(*std::move(helper));
//   }
//   Work();
//   for (std::thread& helper : helpers) helper.join();

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

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_THREADS_H_
