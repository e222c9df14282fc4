#include "tools/oracle/worker.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/embed/cleave.h"
#include "engine/embed/host_call.h"
#include "engine/runtime/program.h"
#include "tools/oracle/oracle.h"
#include "tools/oracle/wire.h"

namespace cleave {
namespace {

constexpr int kArguments = 4;

// The functions that the library makes statuses with; null where it has none.
struct StatusFunctions {
  int32_t (*code)(const cleave_status*) = nullptr;
  const char* (*message)(const cleave_status*) = nullptr;
  void (*free)(cleave_status*) = nullptr;
};

template <typename Function>
void Find(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
}

// A parent that is killed leaves no process behind, whatever the function does.
void EndWithParent() {
  const pid_t parent = getppid();
  std::thread([parent] {
    while (getppid() == parent) sleep(1);
    _exit(1);
  }).detach();
}

OracleReply Run(cleave_host_function function, const StatusFunctions& statuses,
                const OracleCall& call) {
  return embed::CallOnTensors(
      call.op, call.attributes, call.inputs, call.results,
      [&](const cleave_host_call* given) -> absl::Status {
        cleave_status* const status = function(/*context=*/nullptr, given);
        if (status == nullptr) return absl::OkStatus();
        if (statuses.code == nullptr || statuses.message == nullptr) {
          return absl::UnknownError("it returned a status");
        }
        absl::Status error(static_cast<absl::StatusCode>(statuses.code(status)),
                           statuses.message(status));
        if (statuses.free != nullptr) statuses.free(status);
        return error.ok() ? absl::UnknownError("it returned a status") : error;
      });
}

int Serve(const char* path, const char* symbol) {
  EndWithParent();
  const int socket = ChildDescriptor(0);
  const auto refuse = [&](absl::string_view why) {
    const OracleReply reply = absl::NotFoundError(why);
    static_cast<void>(WriteMessage(socket, Serialize(reply)));
    return 1;
  };
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse(dlerror());
  cleave_host_function function = nullptr;
  function = reinterpret_cast<cleave_host_function>(dlsym(library, symbol));
  if (function == nullptr) return refuse(dlerror());
  StatusFunctions statuses;
  Find(library, "cleave_status_code", statuses.code);
  Find(library, "cleave_status_message", statuses.message);
  Find(library, "cleave_status_free", statuses.free);
  OracleReply reply = std::vector<Tensor>();
  while (WriteMessage(socket, Serialize(reply)).ok()) {
    const absl::StatusOr<std::string> bytes = ReadMessage(socket);
    if (!bytes.ok()) break;
    const absl::StatusOr<OracleCall> call = ParseOracleCall(*bytes);
    reply =
        call.ok() ? Run(function, statuses, *call) : OracleReply(call.status());
  }
  // The library's work as a process ends is none of the check.
  _exit(0);
}

}  // namespace

std::optional<int> RunOracleWorker(int argc, char** argv) {
  if (argc != kArguments || std::string(argv[1]) != kWorkerFlag) {
    return std::nullopt;
  }
  return Serve(argv[2], argv[3]);
}

}  // namespace cleave
