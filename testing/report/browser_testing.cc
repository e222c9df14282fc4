#include "testing/report/browser_testing.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {

std::string Chromium() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

namespace {

// The document of a file of `folder` after its scripts ran, as HTML, and the
// browser's complaints.
std::string DumpDom(const std::string& folder, absl::string_view file,
                    bool dark) {
  const std::string command = absl::StrCat(
      "HOME='", folder, "' timeout 100 ", Chromium(),
      " --headless=new --no-sandbox --disable-gpu --user-data-dir='", folder,
      "/profile' --allow-file-access-from-files",
      " --blink-settings=preferredColorScheme=", dark ? 0 : 1,
      " --virtual-time-budget=5000 --dump-dom 'file://", folder, "/", file,
      "' 2>&1");
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return "";
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, n);
  }
  pclose(pipe);
  return output;
}

}  // namespace

std::vector<std::string> FoundBy(const std::string& probe,
                                 const std::string& folder, bool dark) {
  EXPECT_OK(WriteFileAtomically(folder + "/probe.html", probe));
  const std::string output = DumpDom(folder, "probe.html", dark);
  const std::vector<std::string> parts =
      absl::StrSplit(output, "data-found=\"");
  EXPECT_EQ(parts.size(), 2u) << output;
  if (parts.size() < 2) return {};
  return absl::StrSplit(parts[1].substr(0, parts[1].find('"')), ' ');
}

}  // namespace cleave
