#include "engine/rules/shipped_names.h"

#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/lang/rename.h"

namespace cleave {
namespace {

bool IsCallable(const RuleFile::Entry& entry) {
  return entry.item.has_value() && (entry.item->kind == ItemKind::kOp ||
                                    entry.item->kind == ItemKind::kFn);
}

bool IsNamed(const RuleFile::Entry& entry) {
  return IsCallable(entry) ||
         (entry.item.has_value() && entry.item->kind == ItemKind::kDef);
}

// Library keeps defs of shipped files apart from whatever others declare.
void AddNames(const RuleFile& file, bool shipped,
              std::set<std::string>* names) {
  for (const RuleFile::Entry& entry : file.entries) {
    if (shipped ? IsCallable(entry) : IsNamed(entry)) {
      names->insert(entry.item->name);
    }
  }
}

// "mine" of "rules/mine.rules"; of what is no file, "user".
std::string Prefix(absl::string_view file) {
  file = file.substr(file.rfind('/') + 1);
  std::string prefix;
  for (const char c : file.substr(0, file.find('.'))) {
    prefix += absl::ascii_isalnum(c) ? c : '_';
  }
  return !prefix.empty() && absl::ascii_isalpha(prefix[0]) ? prefix : "user";
}

}  // namespace

RenamedItems RenameBesideShipped(const Library& library,
                                 std::vector<ParsedFile>* files) {
  std::set<std::string> shipped;
  std::set<std::string> others;
  for (const auto& file : library.files()) {
    AddNames(file->file, file->shipped, file->shipped ? &shipped : &others);
  }
  for (const ParsedFile& file : *files) {
    AddNames(file.file, file.shipped, file.shipped ? &shipped : &others);
  }
  RenamedItems result;
  std::map<std::string, std::string> renamed;
  for (const ParsedFile& file : *files) {
    if (file.shipped) continue;
    for (const RuleFile::Entry& entry : file.file.entries) {
      if (!IsNamed(entry) || shipped.count(entry.item->name) == 0) continue;
      const std::string& name = entry.item->name;
      const auto [it, is_new] = renamed.try_emplace(name);
      if (!is_new) continue;  // declared twice, by these names, too
      it->second = absl::StrCat(Prefix(file.source.name()), "_", name);
      while (shipped.count(it->second) + others.count(it->second) > 0) {
        it->second += "_";
      }
      others.insert(it->second);
      if (entry.item->kind == ItemKind::kFn) {
        result.functions[name] = it->second;
      }
      if (entry.item->kind != ItemKind::kOp) continue;
      result.notes.push_back(absl::StrCat(
          file.source.name(), ":",
          file.source.PositionOf(entry.item->range.begin).line, ": note: `",
          name, "` is `", it->second, "` outside of what is loaded with it, ",
          "where `", name, "` is the shipped one\n"));
    }
  }
  if (renamed.empty()) return result;
  for (ParsedFile& file : *files) {
    if (!file.shipped) RenameItems(renamed, &file.file);
  }
  return result;
}

}  // namespace cleave
