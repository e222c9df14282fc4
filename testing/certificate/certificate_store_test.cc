#include "testing/certificate/certificate_store.h"

#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

Certificate Softplus(int64_t samples = 7) {
  Certificate certificate;
  certificate.rule = std::string(64, 'a');
  certificate.date = "2026-11-23";
  certificate.report.op = "softplus";
  Verdict& verdict = certificate.report.layers[Layer::kTypes];
  verdict.kind = VerdictKind::kAgrees;
  verdict.samples = samples;
  return certificate;
}

std::unique_ptr<CertificateStore> Open(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CertificateStore>> store =
      CertificateStore::Open(folder);
  EXPECT_OK(store);
  return store.ok() ? *std::move(store) : nullptr;
}

// The samples of the certificate that is there, 0 if there is none.
int64_t Found(CertificateStore& store, const Conditions& conditions = {},
              const Environment& environment = ThisEnvironment(),
              const std::string& rule = std::string(64, 'a')) {
  const absl::StatusOr<std::optional<Certificate>> read =
      store.Read("softplus", rule, conditions, environment);
  EXPECT_OK(read);
  if (!read.ok() || !read->has_value()) return 0;
  EXPECT_EQ((*read)->date, "2026-11-23");
  return (*read)->report.layers.at(Layer::kTypes).samples;
}

TEST(CertificateStore, FindsWhatAnotherProcessWrote) {
  const std::string folder = NewFolder() + "/new/certificates";
  ASSERT_EQ(RunInChild([&] {
              const auto store = Open(folder);
              return store->Write(Softplus(), {}, ThisEnvironment()).ok() ? 0
                                                                          : 1;
            }),
            0);
  const auto store = Open(folder);
  EXPECT_EQ(Found(*store), 7);
  ASSERT_OK(store->Write(Softplus(8), {}, ThisEnvironment()));
  EXPECT_EQ(Found(*store), 8);
}

TEST(CertificateStore, FindsNothingForAnotherRuleConditionOrEnvironment) {
  const auto store = Open(NewFolder());
  ASSERT_OK(store->Write(Softplus(), {}, ThisEnvironment()));
  EXPECT_EQ(Found(*store, {}, ThisEnvironment(), std::string(64, 'b')), 0);
  std::vector<Conditions> others(6);
  others[0].seed = 2;
  others[1].layers = {"L1"};
  others[2].kernels = true;
  others[3].dtypes = {"f32"};
  others[4].sizes = {{"n", 4}};
  others[5].limits = {{"nodes", 4}};
  for (const Conditions& other : others) {
    EXPECT_EQ(Found(*store, other), 0) << other.ToString();
  }
  std::vector<Environment> elsewhere(6, ThisEnvironment());
  elsewhere[0].engine[0] ^= 1;
  elsewhere[1].compiler += "1";
  elsewhere[2].libm += "1";
  elsewhere[3].mpfr += "1";
  elsewhere[4].cpu += " new";
  elsewhere[5].kernels = "Halide";
  for (const Environment& other : elsewhere) {
    EXPECT_EQ(Found(*store, {}, other), 0) << other.ToString();
  }
  EXPECT_EQ(Found(*store), 7);
}

TEST(CertificateStore, SaysWhichFileIsDamagedAndReplacesIt) {
  const std::string folder = NewFolder();
  const auto store = Open(folder);
  ASSERT_OK(store->Write(Softplus(), {}, ThisEnvironment()));
  ASSERT_EQ(ListFolder(folder).size(), 1);
  const std::string path =
      absl::StrCat(folder, "/", ListFolder(folder).front());
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
  std::vector<std::string> damaged = {"", "{}", whole.substr(0, 100),
                                      whole.substr(0, whole.size() - 1),
                                      whole + "\n"};
  // By hand: one count more.
  const size_t count = whole.find("\"samples\":7");
  ASSERT_NE(count, std::string::npos);
  damaged.push_back(whole);
  damaged.back()[count + 10] = '9';
  for (const std::string& bytes : damaged) {
    ASSERT_OK(WriteFileAtomically(path, bytes));
    EXPECT_THAT(
        store->Read("softplus", std::string(64, 'a'), {}, ThisEnvironment()),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
  ASSERT_OK(store->Write(Softplus(), {}, ThisEnvironment()));
  EXPECT_EQ(Found(*store), 7);
}

TEST(CertificateStore, KeepsWhatItHasWhereTheDiskIsFull) {
  const std::string folder = NewFolder();
  const auto store = Open(folder);
  ASSERT_OK(store->Write(Softplus(), {}, ThisEnvironment()));
  EXPECT_EQ(RunInChild([&] {
              LimitFileSize(100);
              const absl::Status status =
                  store->Write(Softplus(9), {}, ThisEnvironment());
              EXPECT_FALSE(status.ok());
              EXPECT_THAT(std::string(status.message()), HasSubstr(folder));
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
  EXPECT_EQ(Found(*store), 7);
  EXPECT_EQ(ListFolder(folder).size(), 1);
}

TEST(CertificateStore, RefusesAFolderThatOthersMayWriteTo) {
  const std::string folder = NewFolder();
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_THAT(CertificateStore::Open(folder).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(CertificateStore, MayBeReadOnly) {
  const std::string folder = NewFolder();
  ASSERT_OK(Open(folder)->Write(Softplus(), {}, ThisEnvironment()));
  EXPECT_EQ(RunInChild([&] {
              ObeyPermissions();
              EXPECT_EQ(chmod(folder.c_str(), 0500), 0);
              const auto store = Open(folder);
              EXPECT_EQ(Found(*store), 7);
              EXPECT_THAT(store->Write(Softplus(9), {}, ThisEnvironment()),
                          StatusIs(absl::StatusCode::kPermissionDenied));
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace cleave
