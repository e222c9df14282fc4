#include "testing/conformance/case_suite.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/runtime/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder of its own for each test.
class CaseSuite : public ::testing::Test {
 protected:
  CaseSuite()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const Tensor tensor = Tensor::FromDoubles(DType::kF64, {2}, {1, 2});
    EXPECT_OK(WriteSafetensors(folder_ + "/op.safetensors",
                               {{"x", tensor}, {"y", tensor}}));
  }

  absl::StatusOr<CaseFile> Read(const std::string& text) {
    std::ofstream(folder_ + "/op.json") << text;
    return ReadCaseFile(folder_ + "/op.json");
  }

  // A suite whose only case has these members besides its id.
  absl::StatusOr<CaseFile> ReadCase(const std::string& members) {
    return Read(absl::StrCat(
        R"({"format": "cleave-cases/1", "op": "op", "cases": [{"id": "op#0", )",
        members, "}]}"));
  }

  const std::string folder_;
};

constexpr char kX[] = R"("args": {"x": {"tensor": "x"}, "k": {"int": 1}})";
constexpr char kY[] = R"("outputs": [{"tensor": "y"}])";

TEST_F(CaseSuite, ReadsEverySection) {
  ASSERT_OK_AND_ASSIGN(const CaseFile file, ReadCase(R"(
      "args": {"x": {"tensor": "x"}, "i": {"int": -3}, "f": {"float": "-inf"},
               "b": {"bool": true}, "s": {"str": "mean"}, "d": {"dtype": "f32"},
               "n": {"none": true}, "l": {"list": [{"int": 1}, {"float": 2}]}},
      "outputs": [{"tensor": "y"}], "rtol": 0.5, "atol": 1,
      "jvp": {"tangents": {"x": {"tensor": "x"}}, "outputs": [null, {"none": true}],
              "rtol": 2},
      "jvp_jvp": {"tangents": [{"x": {"tensor": "x"}}, {"x": {"tensor": "y"}}],
                  "outputs": [{"tensor": "y"}]},
      "vjp": {"cotangents": [{"tensor": "y"}], "grads": {"x": {"tensor": "x"}}},
      "jvp_vjp": {"tangents": {"x": {"tensor": "x"}},
                  "cotangents": [{"tensor": "y"}],
                  "outputs": {"x": {"tensor": "x"}}},
      "vmap": [{"in_axes": {"x": 0, "l": null}, "args": {"x": {"tensor": "x"}},
                "outputs": [{"tensor": "y"}]},
               {"in_axes": {"x": 1}, "args": {"x": {"tensor": "x"}},
                "outputs": [{"tensor": "y"}]}],
      "vmap_jvp": [{"in_axes": {"x": 0}, "args": {"x": {"tensor": "x"}},
                    "tangents": {"x": {"tensor": "x"}},
                    "outputs": [{"tensor": "y"}]}])"));
  EXPECT_EQ(file.op, "op");
  ASSERT_EQ(file.cases.size(), 1u);
  const Case& read = file.cases[0];
  EXPECT_EQ(read.id, "op#0");
  EXPECT_EQ(read.arguments.size(), 8u);
  std::vector<std::string> sections;
  for (const CaseSection& section : read.sections) {
    sections.push_back(absl::StrCat(section.name, section.number));
  }
  EXPECT_THAT(sections, ElementsAre("outputs0", "jvp0", "jvp_jvp0", "vjp0",
                                    "jvp_vjp0", "vmap0", "vmap1", "vmap_jvp0"));
  EXPECT_EQ(read.sections[0].tolerance.relative, 0.5);
  EXPECT_EQ(read.sections[1].tolerance.relative, 2);
  EXPECT_EQ(read.sections[1].tolerance.absolute, 1);
  EXPECT_FALSE(read.sections[1].outputs[0].has_value());
  EXPECT_FALSE(read.sections[1].outputs[1].has_value());
  EXPECT_EQ(read.sections[2].tangents.size(), 2u);
  EXPECT_FALSE(read.sections[5].in_axes.at("l").has_value());
  EXPECT_EQ(read.sections[6].in_axes.at("x"), 1);
  EXPECT_EQ(read.sections[7].outputs[0]->key, "y");
}

TEST_F(CaseSuite, NamesTheFileThatIsMalformed) {
  struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"\xff\xfe", "not JSON"},
      {"[]", "not an object"},
      {"{}", "the member `cases` is missing"},
      {R"({"format": 1, "op": "x", "cases": []})", "format"},
      {R"({"format": "cleave-cases/2", "op": "x", "cases": []})", "format"},
      {R"({"format": "cleave-cases/1", "op": 1, "cases": []})",
       "/op: not a string"},
      {R"({"format": "cleave-cases/1", "op": "x", "cases": {}})",
       "cases: not a list"},
      {R"({"format": "cleave-cases/1", "op": "x", "cases": [], "more": 1})",
       "unknown member `more`"},
      {R"({"format": "cleave-cases/1", "op": "x", "cases": [1]})",
       "/cases/0: not an object"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Read(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("op.json"), HasSubstr(c.message))))
        << c.text;
  }
}

TEST_F(CaseSuite, PointsAtWhatIsMalformed) {
  const std::string x = kX;
  const std::string y = kY;
  const std::string good = absl::StrCat(x, ", ", y);
  ASSERT_OK(ReadCase(good));
  // A section in place of $.
  const std::string jvp = absl::StrCat(good, R"(, "jvp": $)");
  const std::string vmap = absl::StrCat(good, R"(, "vmap": [$])");
  struct {
    std::string members;
    const char* section;
    const char* message;
  } cases[] = {
      {x, "", "/cases/0: the member `outputs` is missing"},
      {y, "", "/cases/0: the member `args` is missing"},
      {good + R"(, "jpv": {})", "", "unknown member `jpv`"},
      {good + R"(, "rtol": "0")", "", "/cases/0/rtol: not a number >= 0"},
      {good + R"(, "atol": -1)", "", "/cases/0/atol: not a number >= 0"},
      {R"("args": [], )" + y, "", "/args: not an object"},
      {R"("args": {"a": 1}, )" + y, "", "/args/a: a value is an object"},
      {R"("args": {"a/b": {}}, )" + y, "", "/args/a~1b: a value is an object"},
      {R"("args": {"a": {"int": 1, "float": 1}}, )" + y, "",
       "/args/a: a value is an object with one member"},
      {R"("args": {"a": {"int": 1.5}}, )" + y, "", "/args/a/int: not an int"},
      {R"("args": {"a": {"int": 9223372036854775808}}, )" + y, "",
       "/args/a/int: not an integer of 64 bits"},
      {R"("args": {"a": {"float": "1"}}, )" + y, "", "/args/a/float: not a"},
      {R"("args": {"a": {"bool": 1}}, )" + y, "", "malformed value of kind"},
      {R"("args": {"a": {"none": 1}}, )" + y, "", "malformed value of kind"},
      {R"("args": {"a": {"str": 1}}, )" + y, "", "/args/a/str: not a string"},
      {R"("args": {"a": {"dtype": "float"}}, )" + y, "", "/args/a/dtype: "},
      {R"("args": {"a": {"list": 1}}, )" + y, "", "malformed value of kind"},
      {R"("args": {"a": {"list": [{"int": 1}, {}]}}, )" + y, "",
       "/args/a/list/1: a value is an object"},
      {R"("args": {"a": {"complex": 1}}, )" + y, "", "of kind `complex`"},
      {R"("args": {"a": {"tensor": "z"}}, )" + y, "", "no tensor `z`"},
      {R"("args": {"a": {"tensor": 1}}, )" + y, "", "named by its key"},
      {x + R"(, "outputs": {})", "", "/outputs: not a list"},
      {x + R"(, "outputs": [1])", "", "/outputs/0: a tensor is named"},
      {jvp, "[]", "/cases/0/jvp: not an object"},
      {jvp, R"({"outputs": []})", "the member `tangents` is missing"},
      {jvp, R"({"tangents": {}})", "the member `outputs` is missing"},
      {jvp, R"({"tangents": [{}], "outputs": []})", "/tangents: not an object"},
      {jvp, R"({"tangents": {"z": {"tensor": "x"}}, "outputs": []})",
       "/jvp/tangents: the case has no argument `z`"},
      {good + R"(, "jvp_jvp": {"tangents": [{}], "outputs": []})", "",
       "/jvp_jvp/tangents: not a list of 2"},
      {good + R"(, "vjp": {"cotangents": [], "outputs": []})", "",
       "unknown member `outputs`"},
      {good + R"(, "vmap": {})", "", "/cases/0/vmap: not a list"},
      {vmap, R"({"args": {}, "outputs": []})", "`in_axes` is missing"},
      {vmap, R"({"in_axes": [0], "args": {}, "outputs": []})",
       "/vmap/0/in_axes: not an object"},
      {vmap, R"({"in_axes": {"x": -1}, "args": {}, "outputs": []})",
       "/vmap/0/in_axes/x: neither an axis nor null"},
      {vmap, R"({"in_axes": {"x": 4294967296}, "args": {}, "outputs": []})",
       "/vmap/0/in_axes/x: neither an axis nor null"},
      {vmap, R"({"in_axes": {"z": 0}, "args": {}, "outputs": []})",
       "/vmap/0/in_axes: the case has no argument `z`"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        ReadCase(absl::StrReplaceAll(c.members, {{"$", c.section}})),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("op.json: /cases/0"), HasSubstr(c.message))))
        << c.members << " " << c.section;
  }
}

TEST_F(CaseSuite, LimitsTheDepthOfLists) {
  std::string open, close;
  for (int i = 0; i < 20000; ++i) {
    open += R"({"list": [)";
    close += "]}";
  }
  EXPECT_THAT(ReadCase(absl::StrCat(R"("args": {"a": )", open, close,
                                    R"(}, "outputs": [])")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lists nest too deep")));
}

TEST_F(CaseSuite, NeedsItsTensors) {
  std::filesystem::remove(folder_ + "/op.safetensors");
  EXPECT_THAT(
      ReadCase(absl::StrCat(kX, ", ", kY)),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("op.safetensors")));
  std::ofstream(folder_ + "/op.safetensors") << "short";
  EXPECT_THAT(ReadCase(absl::StrCat(kX, ", ", kY)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("op.safetensors")));
}

TEST_F(CaseSuite, ListsItsFiles) {
  EXPECT_THAT(ListCaseFiles(folder_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ListCaseFiles(folder_), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(folder_ + "/b.json") << "{}";
  std::ofstream(folder_ + "/a.json") << "{}";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> files,
                       ListCaseFiles(folder_));
  EXPECT_THAT(files, ElementsAre(folder_ + "/a.json", folder_ + "/b.json"));
}

}  // namespace
}  // namespace cleave
