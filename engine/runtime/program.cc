#include "engine/runtime/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace cleave {
namespace {

constexpr int kFirstFile = 10;

// Out of the way of the descriptors that the child gets.
class Raised {
 public:
  Raised(int descriptor, size_t files)
      : number_(fcntl(descriptor, F_DUPFD_CLOEXEC,
                      kFirstFile + static_cast<int>(files))) {}
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;
  ~Raised() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  const int number_;
};

}  // namespace

std::string FindProgram(const std::string& name) {
  if (absl::StrContains(name, '/')) {
    return access(name.c_str(), X_OK) == 0 ? name : "";
  }
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    std::string file = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

int ChildDescriptor(int index) { return kFirstFile + index; }

std::string ChildFile(int index) {
  return absl::StrCat("/proc/self/fd/", ChildDescriptor(index));
}

absl::StatusOr<pid_t> StartProgram(const std::vector<std::string>& arguments,
                                   const std::vector<int>& files,
                                   int messages) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::vector<std::unique_ptr<Raised>> raised;
  const auto pass = [&](int from, int to) {
    raised.push_back(std::make_unique<Raised>(from, files.size()));
    posix_spawn_file_actions_adddup2(&actions, raised.back()->number(), to);
  };
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  pass(messages, STDOUT_FILENO);
  pass(messages, STDERR_FILENO);
  for (size_t i = 0; i < files.size(); ++i) {
    pass(files[i], ChildDescriptor(static_cast<int>(i)));
  }
  // The thread that asks may block signals, and a host may ignore some.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::Status(
        absl::ErrnoToStatusCode(error),
        absl::StrCat("cannot run ", argv[0], ": ", std::strerror(error)));
  }
  return child;
}

std::string WaitForProgram(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    // A host that ignores SIGCHLD has no exit status: the output must do.
    return errno == ECHILD ? "" : std::strerror(errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return WIFEXITED(status)
             ? absl::StrCat("exited with ", WEXITSTATUS(status))
             : absl::StrCat("was ended by signal ", WTERMSIG(status));
}

}  // namespace cleave
