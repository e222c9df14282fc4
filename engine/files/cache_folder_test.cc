#include "engine/files/cache_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Bytes = std::optional<std::string>;

constexpr int64_t kLarge = int64_t{1} << 40;

std::unique_ptr<CacheFolder> Open(const std::string& path,
                                  int64_t max_bytes = kLarge) {
  absl::StatusOr<std::unique_ptr<CacheFolder>> folder =
      CacheFolder::Open(path, max_bytes);
  EXPECT_THAT(folder, IsOk());
  return *std::move(folder);
}

// Says that the file was used `seconds` ago.
void Age(const std::string& path, int64_t seconds) {
  const timespec used = {time(nullptr) - seconds, 0};
  const timespec times[2] = {used, used};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

TEST(CacheFolder, KeepsBytes) {
  const std::string path = NewFolder() + "/some/where";
  const std::unique_ptr<CacheFolder> folder = Open(path);
  const std::string zeros(1000, '\0');
  for (const std::string& key : {std::string(), std::string("k"), zeros}) {
    EXPECT_THAT(folder->Read(key, ".so"), IsOkAndHolds(Bytes()));
    for (const std::string& bytes :
         {std::string("new"), std::string(), zeros}) {
      ASSERT_THAT(folder->Write(key, ".so", bytes), IsOk());
      EXPECT_THAT(folder->Read(key, ".so"), IsOkAndHolds(Bytes(bytes)));
      EXPECT_THAT(Open(path)->Read(key, ".so"), IsOkAndHolds(Bytes(bytes)));
    }
    EXPECT_THAT(folder->Read(key, ".o"), IsOkAndHolds(Bytes()));
  }
  EXPECT_THAT(ListFolder(path), SizeIs(3));
}

TEST(CacheFolder, TellsKeysOfOneHashApart) {
  const std::unique_ptr<CacheFolder> folder = Open(NewFolder());
  ASSERT_THAT(folder->Write("one", ".so", "bytes"), IsOk());
  ASSERT_EQ(rename(folder->FileName("one", ".so").c_str(),
                   folder->FileName("two", ".so").c_str()),
            0);
  EXPECT_THAT(folder->Read("two", ".so"), IsOkAndHolds(Bytes()));
}

TEST(CacheFolder, FindsEveryDamage) {
  const std::unique_ptr<CacheFolder> folder = Open(NewFolder());
  const std::string path = folder->FileName("key", ".so");
  ASSERT_THAT(folder->Write("key", ".so", "some bytes of a kernel"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
  const auto expect_damaged = [&](const std::string& file) {
    ASSERT_THAT(WriteFileAtomically(path, file, Durability::kVolatile), IsOk());
    EXPECT_THAT(folder->Read("key", ".so"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      expect_damaged(flipped);
    }
    expect_damaged(whole.substr(0, i));
    expect_damaged(whole.substr(i + 1));
    expect_damaged(whole.substr(0, i) + std::string(whole.size() - i, '\0'));
  }
  expect_damaged(whole + "x");
  expect_damaged(whole + whole);
  expect_damaged(std::string(whole.size(), '\xff'));
  ASSERT_THAT(folder->Write("key", ".so", "new"), IsOk());
  EXPECT_THAT(folder->Read("key", ".so"), IsOkAndHolds(Bytes("new")));
}

TEST(CacheFolder, RefusesUnsafeFolders) {
  const std::string path = NewFolder() + "/cache";
  Open(path);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  for (const mode_t mode : {0777, 0770, 0722, 01777}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(
        CacheFolder::Open(path, kLarge),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("chmod")));
  }
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_THAT(CacheFolder::Open(path, kLarge), IsOk());
  // Only root may give files away, and not in every container.
  if (chown(path.c_str(), 12345, 12345) == 0) {
    EXPECT_THAT(CacheFolder::Open(path, kLarge),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("another user")));
  }
}

TEST(CacheFolder, RefusesWhatIsNoFolder) {
  const std::string file = NewFolder() + "/file";
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  EXPECT_THAT(
      CacheFolder::Open(file, kLarge),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no folder")));
  EXPECT_THAT(CacheFolder::Open(file + "/in", kLarge).status(), Not(IsOk()));
  EXPECT_THAT(CacheFolder::Open("", kLarge).status(), Not(IsOk()));
}

TEST(CacheFolder, RemovesTheLeastRecentlyUsed) {
  const std::string path = NewFolder();
  const std::string bytes(1000, 'x');
  for (int i = 0; i < 8; ++i) {
    const std::string key = absl::StrCat(i);
    const std::unique_ptr<CacheFolder> folder = Open(path);
    ASSERT_THAT(folder->Write(key, ".so", bytes), IsOk());
    Age(folder->FileName(key, ".so"), 1000 - i);
  }
  const std::unique_ptr<CacheFolder> folder = Open(path, 6000);
  // Now the most recently used.
  EXPECT_THAT(folder->Read("1", ".so"), IsOkAndHolds(Bytes(bytes)));
  ASSERT_THAT(folder->Write("new", ".so", bytes), IsOk());
  EXPECT_EQ(folder->evicted(), 4);
  for (const char* key : {"1", "5", "6", "7", "new"}) {
    EXPECT_THAT(folder->Read(key, ".so"), IsOkAndHolds(Bytes(bytes))) << key;
  }
  EXPECT_THAT(ListFolder(path), SizeIs(5));
  // The file just written stays, even if nothing else fits.
  ASSERT_THAT(folder->Write("huge", ".so", std::string(10000, 'x')), IsOk());
  EXPECT_THAT(ListFolder(path), SizeIs(1));
}

TEST(CacheFolder, BoundsWhatSeveralWrite) {
  const std::string path = NewFolder();
  const std::unique_ptr<CacheFolder> one = Open(path, 20000);
  const std::unique_ptr<CacheFolder> two = Open(path, 20000);
  for (int i = 0; i < 500; ++i) {
    const std::unique_ptr<CacheFolder>& folder = i % 2 == 0 ? one : two;
    ASSERT_THAT(folder->Write(absl::StrCat(i), ".so", std::string(1000, 'x')),
                IsOk());
    ASSERT_LE(ListFolder(path).size(), 45u);
  }
}

TEST(CacheFolder, RemovesWhatKilledWritersLeft) {
  const std::string path = NewFolder();
  const std::unique_ptr<CacheFolder> folder = Open(path);
  const std::string old_part =
      absl::StrCat(folder->FileName("a", ".so"), kPartMark, "12-0-ff");
  const std::string new_part =
      absl::StrCat(folder->FileName("b", ".so"), kPartMark, "12-0-ff");
  const std::string foreign = path + "/foreign.part-12";
  const std::string other = path + "/notes.so";
  for (const std::string& file : {old_part, new_part, foreign, other}) {
    ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
    if (file != new_part) Age(file, 3600);
  }
  ASSERT_THAT(Open(path, 1)->Write("c", ".so", "bytes"), IsOk());
  EXPECT_NE(access(old_part.c_str(), F_OK), 0);
  for (const std::string& file : {new_part, foreign, other}) {
    EXPECT_EQ(access(file.c_str(), F_OK), 0) << file;
  }
}

TEST(CacheFolder, SurvivesAFullDisk) {
  const std::string path = NewFolder();
  const std::unique_ptr<CacheFolder> folder = Open(path);
  ASSERT_THAT(folder->Write("key", ".so", "old"), IsOk());
  EXPECT_EQ(RunInChild([&] {
              LimitFileSize(1000);
              const absl::Status status =
                  folder->Write("key", ".so", std::string(2000, 'x'));
              if (status.ok()) return 1;
              if (!absl::StrContains(status.message(), path)) return 2;
              return folder->Write("other", ".so", "small").ok() ? 0 : 3;
            }),
            0);
  EXPECT_THAT(folder->Read("key", ".so"), IsOkAndHolds(Bytes("old")));
  EXPECT_THAT(folder->Read("other", ".so"), IsOkAndHolds(Bytes("small")));
  EXPECT_THAT(ListFolder(path), SizeIs(2)) << "part files are left";
}

TEST(CacheFolder, ReadsAFolderThatItMayNotWrite) {
  const std::string path = NewFolder();
  ASSERT_THAT(Open(path)->Write("key", ".so", "bytes"), IsOk());
  ASSERT_EQ(chmod(path.c_str(), 0500), 0);
  EXPECT_EQ(RunInChild([&] {
              ObeyPermissions();
              const auto folder = CacheFolder::Open(path, kLarge);
              if (!folder.ok()) return 1;
              const auto bytes = (*folder)->Read("key", ".so");
              if (!bytes.ok() || *bytes != Bytes("bytes")) return 2;
              const absl::Status status = (*folder)->Write("k", ".so", "b");
              return absl::IsPermissionDenied(status) ? 0 : 3;
            }),
            0);
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
}

std::string BytesFor(int entry) {
  return std::string(static_cast<size_t>(20000 + 37 * entry),
                     static_cast<char>('a' + entry % 26));
}

TEST(CacheFolder, SurvivesKilledWriters) {
  constexpr int kEntries = 200;
  constexpr unsigned kFailed = std::numeric_limits<unsigned>::max();
  const std::string path = NewFolder();
  std::mt19937 random(1);
  // How much the child has written, in memory that both see.
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  for (int round = 0; round < 12; ++round) {
    auto* const written = new (shared) std::atomic<unsigned>(0);
    const pid_t child = StartChild([&] {
      const std::unique_ptr<CacheFolder> folder = Open(path);
      while (true) {
        for (int i = 0; i < kEntries; ++i) {
          if (!folder->Write(absl::StrCat(i), ".so", BytesFor(i)).ok()) {
            *written = kFailed;
            return 1;
          }
          ++*written;
        }
      }
    });
    // Up to a quarter more than there are entries, and within a write.
    const unsigned writes = random() % (5 * kEntries / 4);
    while (*written < writes) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    kill(child, SIGKILL);
    EXPECT_EQ(WaitForChild(child), -1);
    const std::unique_ptr<CacheFolder> folder = Open(path);
    unsigned found = 0;
    for (int i = 0; i < kEntries; ++i) {
      ASSERT_OK_AND_ASSIGN(const Bytes bytes,
                           folder->Read(absl::StrCat(i), ".so"));
      if (!bytes.has_value()) continue;
      EXPECT_EQ(*bytes, BytesFor(i));
      ++found;
    }
    EXPECT_GE(found, std::min<unsigned>(writes, kEntries));
  }
  munmap(shared, sizeof(std::atomic<unsigned>));
  for (const std::string& name : ListFolder(path)) {
    Age(absl::StrCat(path, "/", name), 3600);
  }
  ASSERT_THAT(Open(path)->Write("last", ".so", ""), IsOk());
  for (const std::string& name : ListFolder(path)) {
    EXPECT_THAT(name, Not(HasSubstr(kPartMark)));
  }
}

TEST(CacheFolder, ServesSeveralProcesses) {
  const std::string path = NewFolder();
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 3; ++process) {
    children.push_back(StartChild([&] {
      // Small enough that they remove each other's files all the time.
      const std::unique_ptr<CacheFolder> folder = Open(path, 300000);
      std::mt19937 random(process);
      int found = 0;
      for (int i = 0; i < 800; ++i) {
        const int entry = static_cast<int>(random() % 30);
        const std::string key = absl::StrCat(entry);
        const absl::StatusOr<Bytes> bytes = folder->Read(key, ".so");
        if (!bytes.ok()) return 1;
        if (bytes->has_value()) {
          if (**bytes != BytesFor(entry)) return 2;
          ++found;
        } else if (!folder->Write(key, ".so", BytesFor(entry)).ok()) {
          return 3;
        }
      }
      return found > 100 ? 0 : 4;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(WaitForChild(child), 0);
}

}  // namespace
}  // namespace cleave
