// Files that tests of the language read, by paths from the repository's root.

#ifndef CLEAVE_ENGINE_LANG_LANG_TESTING_H_
#define CLEAVE_ENGINE_LANG_LANG_TESTING_H_

#include <string>
#include <vector>

namespace cleave {

// Fails the test if the file cannot be read.
std::string ReadFile(const std::string& path);

// rules/*/*.rules, sorted.
std::vector<std::string> ShippedRuleFiles();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_LANG_TESTING_H_
