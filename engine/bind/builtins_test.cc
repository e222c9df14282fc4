#include "engine/bind/builtins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace cleave {
namespace {

// The names in the first column of the tables below `heading`.
std::set<std::string> NamesInTables(const std::string& path,
                                    const std::string& heading) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::set<std::string> names;
  bool below = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "## ")) below = line == heading;
    if (!below || !absl::StartsWith(line, "| `")) continue;
    const std::string cell = line.substr(2, line.find(" | ") - 2);
    static const std::regex name("`([a-z0-9_.]+)\\(");
    for (std::sregex_iterator i(cell.begin(), cell.end(), name), end; i != end;
         ++i) {
      EXPECT_TRUE(names.insert((*i)[1]).second) << (*i)[1] << " stands twice";
    }
  }
  return names;
}

// All builtins are in the tables of rules/README.md, and nothing else.
TEST(Builtins, AreDocumented) {
  const std::vector<std::string> all = BuiltinNames();
  EXPECT_GT(all.size(), 80u);
  EXPECT_THAT(NamesInTables("rules/README.md", "## Builtins"),
              testing::UnorderedElementsAreArray(all));
}

}  // namespace
}  // namespace cleave
