// Runs a fuzz target on every file of its corpus, which holds what once broke
// it and what reached new code:
//
//   replay_rules_test testing/fuzz/corpus/rules

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(Replay, EveryFileOfTheCorpus) {
  const std::vector<std::string> arguments = testing::internal::GetArgvs();
  ASSERT_EQ(arguments.size(), 2) << "the corpus is the one argument";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_EQ(LLVMFuzzerTestOneInput(
                  reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
              0);
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
