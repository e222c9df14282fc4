#include "tools/oracle/oracle.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/program.h"
#include "ops/status_macros.h"
#include "tools/oracle/wire.h"
#include "tools/oracle/worker.h"

namespace cleave {
namespace {

// One process at a time, and the socket to it.
class Process {
 public:
  explicit Process(OracleOptions options) : options_(std::move(options)) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { Stop(); }

  // Where none runs. Errors of the library are the worker's.
  absl::Status Start() {
    if (child_ > 0) return absl::OkStatus();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::InternalError(
          absl::StrCat("no socket for the oracle: ", strerror(errno)));
    }
    socket_ = ends[0];
    // The library's own output is none of the report.
    const absl::StatusOr<pid_t> child = StartProgram(
        {options_.program, kWorkerFlag, options_.library, options_.symbol},
        {ends[1]}, STDERR_FILENO);
    close(ends[1]);
    if (!child.ok()) {
      Stop();
      return absl::InternalError(absl::StrCat("no process for the oracle: ",
                                              child.status().message()));
    }
    child_ = *child;
    return Receive().status();
  }

  absl::StatusOr<std::vector<Tensor>> Call(const OracleCall& call) {
    CLEAVE_RETURN_IF_ERROR(Start());
    const absl::Status sent = WriteMessage(socket_, Serialize(call));
    if (!sent.ok()) return Ended();
    return Receive();
  }

  bool hung() const { return hung_; }
  const OracleOptions& options() const { return options_; }

 private:
  absl::StatusOr<std::vector<Tensor>> Receive() {
    const auto deadline =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(options_.seconds));
    const absl::StatusOr<std::string> bytes = ReadMessage(socket_, deadline);
    if (absl::IsDeadlineExceeded(bytes.status())) {
      hung_ = true;
      Stop();
      return absl::InternalError(
          absl::StrCat("`", options_.symbol, "` did not return within ",
                       options_.seconds, " s, and was stopped"));
    }
    if (!bytes.ok()) return Ended();
    CLEAVE_ASSIGN_OR_RETURN(OracleReply reply, ParseOracleReply(*bytes));
    return reply;
  }

  // The process is gone: why?
  absl::Status Ended() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
    child_ = 0;
    Stop();
    if (WIFSIGNALED(status)) {
      return absl::InternalError(absl::StrCat(
          "`", options_.symbol, "` ended its process by signal ",
          WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")"));
    }
    return absl::InternalError(absl::StrCat("`", options_.symbol,
                                            "` ended its process with status ",
                                            WEXITSTATUS(status)));
  }

  void Stop() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      WaitForProgram(child_);
    }
    child_ = 0;
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  const OracleOptions options_;
  pid_t child_ = 0;
  int socket_ = -1;
  bool hung_ = false;
};

struct Shared {
  explicit Shared(const OracleOptions& options) : process(options) {}
  std::mutex mutex;
  Process process;  // guarded by mutex
};

absl::StatusOr<std::vector<Tensor>> CallOracle(Shared& shared,
                                               const HostCall& host) {
  OracleCall call;
  call.op = std::string(host.op);
  call.attributes = host.attributes.ToString();
  call.inputs.assign(host.inputs.begin(), host.inputs.end());
  for (const TensorType& type : host.results) {
    for (const Dim& extent : type.shape) {
      if (extent.Value().has_value()) continue;
      return absl::UnimplementedError(
          absl::StrCat("not supported: an oracle for `", call.op,
                       "`, whose results decide their own sizes"));
    }
    call.results.push_back(type);
  }
  const std::lock_guard<std::mutex> lock(shared.mutex);
  if (shared.process.hung()) {
    return absl::UnimplementedError(
        absl::StrCat("`", shared.process.options().symbol,
                     "` did not return once, and is not called again"));
  }
  return shared.process.Call(call);
}

}  // namespace

absl::StatusOr<HostFunction> StartOracle(const OracleOptions& options) {
  const auto shared = std::make_shared<Shared>(options);
  CLEAVE_RETURN_IF_ERROR(shared->process.Start());
  return HostFunction(
      [shared](const HostCall& call) { return CallOracle(*shared, call); });
}

}  // namespace cleave
