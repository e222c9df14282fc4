#include "engine/rules/rule_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "ops/status_macros.h"

namespace cleave {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<std::string>> ListRuleFiles(
    const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      return absl::NotFoundError(absl::StrCat("no file or folder ", path));
    }
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::recursive_directory_iterator it(path, error), end;
         !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".rules") {
        inside.push_back(it->path().string());
      }
    }
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("cannot list ", path, ": ", error.message()));
    }
    if (inside.empty()) {
      return absl::NotFoundError(absl::StrCat("no rule files in ", path));
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

absl::StatusOr<std::vector<NamedSource>> ReadRuleFiles(
    const std::vector<std::string>& paths) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                          ListRuleFiles(paths));
  std::set<fs::path> seen;
  std::vector<NamedSource> sources;
  for (const std::string& path : files) {
    std::error_code error;
    if (!seen.insert(fs::weakly_canonical(path, error)).second) continue;
    CLEAVE_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    sources.push_back({path, std::move(text), absl::EndsWith(path, ".json")});
  }
  return sources;
}

}  // namespace cleave
