#include "testing/certificate/certificate.h"

#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kHash[] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

Verdict Agrees(int64_t samples, double ulp, const std::string& at) {
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  verdict.samples = samples;
  verdict.worst_ulp = ulp;
  verdict.worst_part = ulp / 4;
  verdict.worst_at = at;
  return verdict;
}

OpReport Report() {
  OpReport report;
  report.op = "softplus";
  report.place = "a.rules:3";
  report.seconds = 0.25;
  report.loose_claim = true;
  report.layers[Layer::kForm] = Agrees(0, 0, "");
  report.layers[Layer::kForm].strength = Strength::kProved;
  report.layers[Layer::kRounding] = Agrees(17, 1.1, "x = \"1\" \\ π");
  report.layers[Layer::kRounding].notes = {"one", "two\nlines"};
  report.layers[Layer::kRounding].worst_part =
      std::numeric_limits<double>::infinity();
  report.layers[Layer::kExamples] = Verdict::NotChecked("none");
  return report;
}

CertificateFile File() {
  CertificateFile file;
  file.conditions.seed = UINT64_MAX;
  file.conditions.layers = {"L0", "L3", "examples"};
  file.conditions.kernels = true;
  file.conditions.dtypes = {"f32"};
  file.conditions.sizes = {{"n", 4096}};
  file.conditions.limits = {{"nodes", 7}};
  Environment environment = ThisEnvironment();
  environment.kernels = "Halide";
  file.Add(Certificate{kHash, "2026-11-23", Report()}, environment);
  OpReport other = Report();
  other.op = "jvp a/b~c";
  other.loose_claim = false;
  other.layers[Layer::kReals].kind = VerdictKind::kNotIndependent;
  file.Add(Certificate{kHash, "2026-11-24", other}, ThisEnvironment());
  return file;
}

// The outcome for the file with a part of it replaced.
std::string ErrorWith(const std::string& part, const std::string& other) {
  const std::string text = File().ToJson();
  const std::string changed = absl::StrReplaceAll(text, {{part, other}});
  EXPECT_NE(text, changed) << part << " is not in\n" << text;
  const absl::StatusOr<CertificateFile> file =
      ParseCertificates(changed, "a.json");
  EXPECT_THAT(file, StatusIs(absl::StatusCode::kInvalidArgument)) << changed;
  return std::string(file.status().message());
}

TEST(Certificate, IsReadAsItWasWritten) {
  const CertificateFile file = File();
  ASSERT_OK_AND_ASSIGN(const CertificateFile read,
                       ParseCertificates(file.ToJson(), "a.json"));
  EXPECT_EQ(read.ToJson(), file.ToJson());
  EXPECT_TRUE(read.conditions == file.conditions);
  EXPECT_EQ(read.environments.size(), 2);
  const Certificate& certificate = read.certificates.at("softplus");
  EXPECT_EQ(certificate.rule, kHash);
  EXPECT_EQ(read.EnvironmentOf(certificate).kernels, "Halide");
  EXPECT_EQ(Difference(certificate.report, Report(), true), std::nullopt);
  EXPECT_EQ(certificate.report.layers.at(Layer::kRounding).notes,
            Report().layers.at(Layer::kRounding).notes);
  EXPECT_TRUE(certificate.report.loose_claim);
}

TEST(Certificate, HasALineForEachVerdict) {
  const std::string text = File().ToJson();
  EXPECT_THAT(text, HasSubstr("\n\"L3\": {"));
  EXPECT_THAT(text, HasSubstr("\n\"softplus\": {\"rule\": \"0123"));
}

TEST(Certificate, IsOfADecidedReport) {
  EXPECT_TRUE(IsCertifiable(Report()));
  EXPECT_FALSE(IsCertifiable(OpReport()));
  for (const VerdictKind kind :
       {VerdictKind::kDisagrees, VerdictKind::kInconclusive}) {
    OpReport report = Report();
    report.layers[Layer::kEdges].kind = kind;
    EXPECT_FALSE(IsCertifiable(report)) << VerdictKindName(kind);
  }
}

TEST(ParseCertificates, RefusesATextThatEndsEarly) {
  const std::string text = File().ToJson();
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_THAT(ParseCertificates(text.substr(0, size), "a.json"),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << size;
  }
}

TEST(ParseCertificates, TakesOrRefusesAnyText) {
  const std::string text = File().ToJson();
  std::mt19937_64 random(1);
  int taken = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = text;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % changed.size();
      switch (random() % 3) {
        case 0:
          changed[at] = static_cast<char>(random());
          break;
        case 1:
          changed.erase(at, random() % 40);
          break;
        default:
          changed.insert(at, text, random() % text.size(), random() % 40);
      }
    }
    const absl::StatusOr<CertificateFile> file =
        ParseCertificates(changed, "a.json");
    if (!file.ok()) {
      EXPECT_THAT(file, StatusIs(absl::StatusCode::kInvalidArgument));
      EXPECT_THAT(std::string(file.status().message()),
                  ::testing::StartsWith("a.json: "));
      continue;
    }
    ++taken;
    // A file that is taken is whole: it can be written, and is read as the
    // same.
    EXPECT_THAT(ParseCertificates(file->ToJson(), "b.json"), IsOk());
    for (const auto& [op, certificate] : file->certificates) {
      EXPECT_TRUE(IsCertifiable(certificate.report)) << op;
    }
  }
  EXPECT_GT(taken, 0);
}

TEST(ParseCertificates, SaysWhereATextIsNoJson) {
  EXPECT_THAT(ErrorWith("\"environments\": {", "\"environments\" {"),
              HasSubstr("a.json: parse error at line 3, column"));
  EXPECT_THAT(ParseCertificates("\xff\xfe", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      ParseCertificates("[]", "a.json"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not an object")));
  EXPECT_THAT(ParseCertificates("{\"format\": 1e999}", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseCertificates(std::string(1 << 20, '['), "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ParseCertificates, RefusesAnotherFormat) {
  EXPECT_THAT(ErrorWith("certificates/1", "certificates/2"),
              HasSubstr("the format is not `cleave-certificates/1`"));
  EXPECT_THAT(ErrorWith("\"format\"", "\"form\""), HasSubstr("the format"));
}

TEST(ParseCertificates, RefusesMembersThatAreMissingUnknownOrOfAnotherType) {
  EXPECT_THAT(ErrorWith("\"date\"", "\"day\""),
              HasSubstr("/certificates/jvp a~1b~0c: unknown member `day`"));
  EXPECT_THAT(ErrorWith(", \"date\": \"2026-11-23\"", ""),
              HasSubstr("a.json: /certificates/softplus: the member `date` is "
                        "missing"));
  EXPECT_THAT(ErrorWith("\"samples\":17", "\"samples\":\"17\""),
              HasSubstr("layers/L3/samples: not an integer >= 0"));
  EXPECT_THAT(ErrorWith("\"samples\":17", "\"samples\":-17"),
              HasSubstr("not an integer >= 0"));
  EXPECT_THAT(ErrorWith("\"samples\":17", "\"samples\":1e30"),
              HasSubstr("not an integer >= 0"));
  EXPECT_THAT(ErrorWith("\"worst_ulp\":1.1", "\"worst_ulp\":-1.1"),
              HasSubstr("worst_ulp: not a number >= 0"));
  EXPECT_THAT(ErrorWith("\"loose_claim\": true", "\"loose_claim\": 1"),
              HasSubstr("loose_claim: not true or false"));
  EXPECT_THAT(ErrorWith("[\"one\",", "[1,"),
              HasSubstr("notes/0: not a string"));
  EXPECT_THAT(ErrorWith("\"kernels\":true", "\"kernels\":null"),
              HasSubstr("/conditions/kernels"));
  EXPECT_THAT(ErrorWith("\"seed\":18446744073709551615", "\"seed\":1.5"),
              HasSubstr("/conditions/seed"));
  EXPECT_THAT(ErrorWith("[\"f32\"]", "[\"f33\"]"), HasSubstr("`f33`"));
  EXPECT_THAT(ErrorWith("\"L3\": {", "\"L7\": {"), HasSubstr("`L7`"));
  EXPECT_THAT(ErrorWith("\"L3\": {", "\"host\": {"), HasSubstr("`host`"));
  EXPECT_THAT(ErrorWith(kHash, "0123"), HasSubstr("not 64 hexadecimal digits"));
}

TEST(ParseCertificates, RefusesVerdictsThatAreNotDecided) {
  for (const char* kind : {"disagrees", "inconclusive", "fine"}) {
    EXPECT_THAT(ErrorWith("\"verdict\":\"agrees\"",
                          absl::StrCat("\"verdict\":\"", kind, "\"")),
                HasSubstr("is no certificate's verdict"));
  }
}

TEST(ParseCertificates, RefusesEnvironmentsThatWereEdited) {
  EXPECT_THAT(ErrorWith("glibc", "musl"),
              HasSubstr("its name is not the hash of what it says"));
  EXPECT_THAT(
      ErrorWith(absl::StrCat("\"environment\": \"", ThisEnvironment().Id()),
                "\"environment\": \"000000000000"),
      HasSubstr("no such environment"));
}

TEST(Conditions, AreThoseOfTheOptions) {
  CheckOptions options;
  options.seed = 3;
  options.layers = {Layer::kReals};
  options.dtypes = {DType::kF16};
  options.sizes = {{"n", 2}};
  const Conditions conditions = Conditions::Of(options);
  EXPECT_EQ(conditions.ToString(),
            "{\"dtypes\":[\"f16\"],\"kernels\":false,\"layers\":[\"L2\"],"
            "\"limits\":{},\"seed\":3,\"sizes\":{\"n\":2}}");
  CheckOptions again;
  conditions.Set(again);
  EXPECT_TRUE(Conditions::Of(again) == conditions);
}

TEST(Conditions, HaveTheLimitsThatAreNoDefaults) {
  Limits limits;
  limits.nodes = 5;
  const BudgetScope scope(limits);
  EXPECT_THAT(Conditions::Of({}).ToString(),
              HasSubstr("\"limits\":{\"nodes\":5}"));
}

TEST(Difference, NamesWhatDiffers) {
  OpReport now = Report();
  now.layers[Layer::kRounding].samples = 18;
  EXPECT_EQ(Difference(Report(), now, true),
            "L3: samples 17 certified, 18 now");
  EXPECT_EQ(Difference(Report(), now, false), std::nullopt);
  now = Report();
  now.layers[Layer::kRounding].worst_ulp = 1.1000000000000003;
  EXPECT_THAT(*Difference(Report(), now, true), HasSubstr("error in ulp"));
  now = Report();
  now.layers[Layer::kRounding].kind = VerdictKind::kDisagrees;
  EXPECT_EQ(Difference(Report(), now, false),
            "L3: the verdict is `agrees` certified, `disagrees` now");
  now = Report();
  now.layers.erase(Layer::kExamples);
  EXPECT_EQ(Difference(Report(), now, false),
            "examples: the layer is there certified, absent now");
}

}  // namespace
}  // namespace cleave
