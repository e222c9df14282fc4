#include "tools/command/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/json_rule.h"
#include "tools/command/command.h"

namespace cleave {
namespace {

namespace fs = std::filesystem;

// The name that RuleSet::Find knows an item by.
std::string FullName(const Item& item) {
  switch (item.kind) {
    case ItemKind::kAten:
      return absl::StrCat("aten.", item.name);
    case ItemKind::kOnnx:
      return absl::StrCat("onnx.", item.name);
    default:
      return item.name;
  }
}

// Paths below the working directory are shown relative to it.
std::string ShownPath(const std::string& path) {
  std::error_code error;
  const fs::path relative = fs::relative(path, error);
  if (error || relative.empty() || absl::StartsWith(relative.string(), "..")) {
    return path;
  }
  return relative.string();
}

}  // namespace

int Complain(absl::string_view message) {
  ShowProgress("");
  std::cerr << "cleave: " << message << "\n";
  return kExitUsage;
}

int Complain(const absl::Status& status) { return Complain(status.message()); }

void ShowProgress(absl::string_view line) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) std::cerr << "\r\033[K" << line << std::flush;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (file.bad()) {
    return absl::DataLossError(absl::StrCat("cannot read ", path));
  }
  return text;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.flush()) {
      return absl::UnavailableError(absl::StrCat("cannot write ", part));
    }
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

ParseResult ParseAny(const Source& source) {
  return absl::EndsWith(source.name(), ".json") ? ParseJsonRules(source)
                                                : ParseRules(source);
}

absl::StatusOr<std::vector<std::string>> RuleFiles(
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

std::optional<LoadedRules> LoadRulePaths(
    const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  if (const char* shipped = std::getenv("CLEAVE_RULES")) all = {shipped};
  all.insert(all.end(), paths.begin(), paths.end());
  const absl::StatusOr<std::vector<std::string>> files = RuleFiles(all);
  const absl::StatusOr<std::vector<std::string>> given = RuleFiles(paths);
  if (!files.ok() || !given.ok()) {
    Complain(files.ok() ? given.status() : files.status());
    return std::nullopt;
  }
  const auto canonical = [](const std::string& path) {
    std::error_code error;
    return fs::weakly_canonical(path, error).string();
  };
  std::set<std::string> named;
  for (const std::string& path : *given) named.insert(canonical(path));
  std::set<std::string> seen;
  std::vector<NamedSource> sources;
  LoadedRules loaded;
  for (const std::string& path : *files) {
    if (!seen.insert(canonical(path)).second) continue;
    absl::StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) {
      Complain(text.status());
      return std::nullopt;
    }
    const Source source(ShownPath(path), *std::move(text));
    if (named.count(canonical(path)) != 0) {
      for (const RuleFile::Entry& entry : ParseAny(source).file.entries) {
        if (entry.item) loaded.declared.insert(FullName(*entry.item));
      }
    }
    sources.push_back(
        {source.name(), source.text(), absl::EndsWith(source.name(), ".json")});
  }
  LoadResult result = LoadRules(sources, std::make_shared<Context>());
  if (result.rules == nullptr) {
    ShowProgress("");
    for (const std::string& diagnostic : result.diagnostics) {
      std::cerr << diagnostic;
    }
    std::cerr << "cleave: " << result.diagnostics.size()
              << (result.diagnostics.size() == 1 ? " mistake" : " mistakes")
              << " in the rules\n";
    return std::nullopt;
  }
  loaded.rules = std::move(result.rules);
  return loaded;
}

}  // namespace cleave
