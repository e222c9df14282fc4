#include "testing/golden_file.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

struct GoldenCase {
  int line = 0;
  std::string comments;
  std::string input;
  std::string output;
};

std::vector<GoldenCase> ReadCases(const std::string& path,
                                  const std::string& text) {
  std::vector<GoldenCase> cases;
  GoldenCase current;
  enum { kComments, kInput, kOutput } part = kComments;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (part == kComments && !absl::StartsWith(line, "//") && !line.empty()) {
      part = kInput;
      current.line = number;
    }
    if (part == kComments) {
      absl::StrAppend(&current.comments, line, "\n");
    } else if (part == kInput) {
      if (line == "--") {
        part = kOutput;
      } else {
        absl::StrAppend(&current.input, line, "\n");
      }
    } else if (line == "==") {
      cases.push_back(std::move(current));
      current = GoldenCase();
      part = kComments;
    } else {
      absl::StrAppend(&current.output, line, "\n");
    }
  }
  if (part != kComments) {
    ADD_FAILURE() << path << ":" << current.line << ": a case without its `--` "
                  << "or `==`";
  }
  return cases;
}

bool Updating() {
  for (const std::string& argument : ::testing::internal::GetArgvs()) {
    if (argument == "--update") return true;
  }
  return false;
}

// The path among the sources, where `bazel run` says where these are.
std::string SourcePath(const std::string& path) {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  return workspace == nullptr ? path : absl::StrCat(workspace, "/", path);
}

void WriteText(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  ASSERT_TRUE(out.good()) << "cannot write " << file;
}

}  // namespace

void TestGoldenFile(
    const std::string& path,
    const std::function<std::string(absl::string_view input)>& stage) {
  const std::string file = SourcePath(path);
  std::ifstream in(file);
  ASSERT_TRUE(in.good()) << "cannot read " << file;
  std::stringstream text;
  text << in.rdbuf();
  const std::vector<GoldenCase> cases = ReadCases(path, text.str());
  ASSERT_FALSE(cases.empty()) << path << " has no cases";
  std::string updated;
  for (const GoldenCase& c : cases) {
    const std::string output = stage(c.input);
    absl::StrAppend(&updated, c.comments, c.input, "--\n", output, "==\n");
    if (!Updating()) {
      EXPECT_EQ(output, c.output)
          << "at " << path << ":" << c.line << "; run with --update to accept";
    }
  }
  if (Updating() && updated != text.str()) WriteText(file, updated);
}

void TestGeneratedFile(const std::string& path, const std::string& text) {
  const std::string file = SourcePath(path);
  if (Updating()) {
    WriteText(file, text);
    return;
  }
  std::ifstream in(file);
  ASSERT_TRUE(in.good()) << "cannot read " << file;
  std::stringstream now;
  now << in.rdbuf();
  EXPECT_EQ(now.str(), text) << path << "; run with --update to accept";
}

}  // namespace cleave
