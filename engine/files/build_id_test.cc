#include "engine/files/build_id.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

int function_of_this_program() { return 0; }

std::string OfThisProgram() {
  return BuildIdOf(reinterpret_cast<const void*>(&function_of_this_program));
}

TEST(BuildId, IsWhatTheLinkerNoted) {
  std::FILE* const notes =
      popen(absl::StrCat("readelf -n /proc/", getpid(), "/exe").c_str(), "r");
  ASSERT_NE(notes, nullptr);
  std::string printed;
  for (int c = std::fgetc(notes); c != EOF; c = std::fgetc(notes)) {
    printed.push_back(static_cast<char>(c));
  }
  ASSERT_EQ(pclose(notes), 0);
  ASSERT_THAT(printed, ::testing::HasSubstr("Build ID: "));
  EXPECT_THAT(printed,
              ::testing::HasSubstr(absl::StrCat(
                  "Build ID: ", absl::BytesToHexString(OfThisProgram()))));
  EXPECT_THAT(OfThisProgram(), ::testing::Not(::testing::IsEmpty()));
}

TEST(BuildId, TellsLibrariesApart) {
  const void* const in_libc = stdout;
  EXPECT_THAT(BuildIdOf(in_libc), ::testing::Not(::testing::IsEmpty()));
  EXPECT_NE(BuildIdOf(in_libc), OfThisProgram());
}

TEST(BuildId, IsEmptyForWhatNoLinkerPlaced) {
  const auto heap = std::make_unique<int>(1);
  EXPECT_EQ(BuildIdOf(heap.get()), "");
  EXPECT_EQ(BuildIdOf(nullptr), "");
}

}  // namespace
}  // namespace cleave
