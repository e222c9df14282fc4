#include "engine/files/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/file_test_", getpid(), "_",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  static mode_t Mode(const std::string& path) {
    struct stat status;
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  std::string folder_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  for (size_t size : {0, 1, 4095, 4096, 4097, 100000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31);
    ASSERT_THAT(WriteFileAtomically(Path("a"), bytes), IsOk());
    EXPECT_THAT(ReadFile(Path("a")), IsOkAndHolds(bytes)) << size;
  }
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(FileTest, ReadsWhatHasNoSize) {
  EXPECT_THAT(ReadFile("/dev/null"), IsOkAndHolds(std::string()));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string bytes(10000, 'x');
  ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), 10000);
  close(ends[1]);
  EXPECT_THAT(ReadFile(absl::StrCat("/dev/fd/", ends[0])), IsOkAndHolds(bytes));
  close(ends[0]);
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  EXPECT_THAT(ReadFile(Path("none")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("cannot open "),
                             EndsWith("/none: No such file or directory"))));
  EXPECT_THAT(ReadFile(folder_), StatusIs(absl::StatusCode::kInvalidArgument,
                                          EndsWith(": Is a directory")));
  EXPECT_THAT(WriteFileAtomically(folder_, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       EndsWith(": Is a directory")));
  EXPECT_THAT(WriteFileAtomically(Path("none/a"), "x"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("cannot write "),
                             EndsWith("/none/a: No such file or directory"))));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFile) {
  ASSERT_THAT(WriteFileAtomically(Path("a"), "old"), IsOk());
  // A limit on the size of files stops the write midway.
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  struct rlimit low = limit;
  low.rlim_cur = 1000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status written =
      WriteFileAtomically(Path("a"), std::string(2000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(written.message(),
            absl::StrCat("cannot write ", Path("a"), ": File too large"));
  EXPECT_THAT(ReadFile(Path("a")), IsOkAndHolds(std::string("old")));
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(FileTest, KeepsPermissionsAndLinks) {
  ASSERT_THAT(WriteFileAtomically(Path("a"), "old"), IsOk());
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(Mode(Path("a")), 0666 & ~mask);
  fs::permissions(Path("a"), static_cast<fs::perms>(0640));
  fs::create_symlink("a", Path("link"));
  ASSERT_THAT(WriteFileAtomically(Path("link"), "new"), IsOk());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_THAT(ReadFile(Path("a")), IsOkAndHolds(std::string("new")));
  EXPECT_EQ(Mode(Path("a")), 0640u);
}

TEST_F(FileTest, WritesToADeviceInPlace) {
  EXPECT_THAT(WriteFileAtomically("/dev/null", "x"), IsOk());
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  EXPECT_THAT(WriteFileAtomically("/dev/full", "x"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "cannot write /dev/full: No space left on device"));
}

TEST_F(FileTest, ReadersSeeOneWholeFile) {
  const std::string a(100000, 'a');
  const std::string b(50000, 'b');
  ASSERT_THAT(WriteFileAtomically(Path("f"), a), IsOk());
  const auto write_often = [&](const std::string& bytes) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(WriteFileAtomically(Path("f"), bytes), IsOk());
    }
  };
  std::thread first(write_often, a);
  std::thread second(write_often, b);
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<std::string> seen = ReadFile(Path("f"));
    ASSERT_THAT(seen, IsOk());
    EXPECT_TRUE(*seen == a || *seen == b) << seen->size() << " bytes";
  }
  first.join();
  second.join();
  EXPECT_THAT(Names(), ElementsAre("f"));
}

}  // namespace
}  // namespace cleave
