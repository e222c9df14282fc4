#include "engine/files/process_testing.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/check.h"

namespace cleave {

pid_t StartChild(absl::FunctionRef<int()> body) {
  std::cout.flush();
  const pid_t child = fork();
  CLEAVE_CHECK(child >= 0);
  if (child == 0) {
    const int status = body();
    std::cout.flush();
    std::cerr.flush();
    // Without what the parent registered to run at its end.
    _exit(status);
  }
  return child;
}

int WaitForChild(pid_t child) {
  int status = 0;
  CLEAVE_CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int RunInChild(absl::FunctionRef<int()> body) {
  return WaitForChild(StartChild(body));
}

void LimitFileSize(int64_t bytes) {
  rlimit limit;
  limit.rlim_cur = static_cast<rlim_t>(bytes);
  limit.rlim_max = static_cast<rlim_t>(bytes);
  CLEAVE_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_IGN);
}

void ObeyPermissions() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  CLEAVE_CHECK(syscall(SYS_capset, &header, data) == 0);
}

std::string NewFolder() {
  // Removed at the end of the program; children leave without.
  struct Folders {
    ~Folders() {
      std::error_code ignored;
      for (const std::string& path : paths) {
        std::filesystem::remove_all(path, ignored);
      }
    }
    std::vector<std::string> paths;
  };
  static Folders made;
  std::string folder = absl::StrCat(::testing::TempDir(), "/cleave-XXXXXX");
  CLEAVE_CHECK(mkdtemp(&folder[0]) != nullptr) << folder;
  made.paths.push_back(folder);
  return folder;
}

std::vector<std::string> ListFolder(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const stream = opendir(folder.c_str());
  CLEAVE_CHECK(stream != nullptr) << folder;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cleave
