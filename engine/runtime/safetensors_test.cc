#include "engine/runtime/safetensors.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

std::string File(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  }
  return absl::StrCat(bytes, header, data);
}

TEST(Safetensors, RoundTripsEveryDType) {
  TensorMap tensors;
  for (DType dtype : AllDTypes()) {
    if (IsComplex(dtype) || dtype == DType::kKey) continue;
    tensors.emplace(
        std::string(DTypeName(dtype)),
        IsFloat(dtype)
            ? Tensor::FromDoubles(dtype, {2, 2},
                                  {0.5, -0.0, std::nan(""),
                                   std::numeric_limits<double>::infinity()})
            : Tensor::FromInts(dtype, {3, 1}, {0, 1, 1}));
  }
  tensors.emplace("empty", Tensor(DType::kF64, {0, 3}));
  tensors.emplace("scalar", Tensor::Scalar(DType::kF32, 2));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, FormatSafetensors(tensors));
  ASSERT_OK_AND_ASSIGN(const TensorMap read, ParseSafetensors(bytes));
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(SameValue(read.at(name), tensor)) << name;
  }
}

TEST(Safetensors, RefusesWhatTheFormatLacks) {
  EXPECT_THAT(FormatSafetensors({{"z", Tensor(DType::kC64, {1})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("c64")));
}

struct BadFile {
  std::string bytes;
  std::string message;
};

TEST(Safetensors, SaysWhatIsWrong) {
  const BadFile kBad[] = {
      {"", "shorter than its header's length"},
      {std::string(8, '\xff'), "does not fit the file"},
      {File("[]", ""), "not a JSON object"},
      {File("{", ""), "not a JSON object"},
      {File(R"({"a":{"b":{"c":{"d":{"e":{}}}}}})", ""), "not a JSON object"},
      {File(R"({"a":1})", ""), "the entry is not an object"},
      {File(R"({"a":{"dtype":"F32","shape":[1]}})", ""), "are needed"},
      {File(R"({"a":{"dtype":"F7","shape":[],"data_offsets":[0,4]}})", "1234"),
       "unknown dtype `F7`"},
      {File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
            "1234"),
       "not a list of extents"},
      {File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
            "1234"),
       "need 8 bytes, data_offsets span 4"},
      {File(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4,0]}})", "1234"),
       "not [begin, end]"},
      {File(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})",
            "12345678"),
       "overlap or leave a gap"},
      {File(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
            "12345"),
       "the data has 5"},
      {File(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],)"
            R"("data_offsets":[0,4]}})",
            "1234"),
       "too large"},
      {File(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
            R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
            ""),
       "occurs twice"},
      {File(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "2"),
       "neither 0 nor 1"},
      {File(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})",
            ""),
       "unknown member `x`"},
  };
  for (const BadFile& bad : kBad) {
    EXPECT_THAT(
        ParseSafetensors(bad.bytes),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)));
  }
}

TEST(Safetensors, NamesTheFile) {
  EXPECT_THAT(
      ReadSafetensors("no/such.safetensors"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such.safetensors")));
}

}  // namespace
}  // namespace cleave
