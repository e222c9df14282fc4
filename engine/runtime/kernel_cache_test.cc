#include "engine/runtime/kernel_cache.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "HalideBuffer.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/codegen/halide/kernel_testing.h"
#include "engine/files/cache_folder.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/kernel_library.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using LibraryPointer = std::shared_ptr<const KernelLibrary>;

KernelCacheOptions In(const std::string& folder) {
  KernelCacheOptions options;
  options.folder = folder;
  return options;
}

// The library whose kernel `marked` starts at `mark`.
absl::StatusOr<LibraryPointer> Get(KernelCache& cache, uint64_t mark,
                                   absl::string_view suffix = "") {
  return cache.Get(
      absl::StrCat("mark ", mark, suffix), "target",
      [&] { return absl::StatusOr<std::string>(MarkedKernels(mark)); },
      [] { return absl::StatusOr<std::string>(TestRuntime()); });
}

uint64_t MarkOf(const KernelLibrary& library) {
  const absl::StatusOr<KernelEntry> entry = library.Find("marked");
  if (!entry.ok()) return 0;
  Halide::Runtime::Buffer<uint64_t> out(3);
  void* arguments[] = {nullptr, out.raw_buffer()};
  KernelCall call;
  if (!call.Run(*entry, absl::MakeSpan(arguments)).ok()) return 0;
  return out(0);
}

bool GivesMark(KernelCache& cache, uint64_t mark,
               absl::string_view suffix = "") {
  const absl::StatusOr<LibraryPointer> library = Get(cache, mark, suffix);
  if (!library.ok()) {
    ADD_FAILURE() << library.status();
    return false;
  }
  return MarkOf(**library) == mark;
}

std::string FileEnding(const std::string& folder, absl::string_view end) {
  for (const std::string& name : ListFolder(folder)) {
    if (absl::EndsWith(name, end)) return absl::StrCat(folder, "/", name);
  }
  ADD_FAILURE() << "no file ends in " << end;
  return "";
}

TEST(KernelCache, KeepsInMemory) {
  KernelCache cache((KernelCacheOptions()));
  EXPECT_EQ(cache.folder(), "");
  EXPECT_THAT(cache.folder_status(), IsOk());
  for (int round = 0; round < 3; ++round) {
    for (uint64_t mark = 1; mark <= 3; ++mark) {
      EXPECT_TRUE(GivesMark(cache, mark));
    }
  }
  const KernelCacheStats stats = cache.stats();
  EXPECT_EQ(stats.compiled, 3);
  EXPECT_EQ(stats.compile_milliseconds.size(), 3);
  EXPECT_EQ(stats.memory_hits, 6);
  EXPECT_EQ(stats.disk_hits + stats.failed + stats.stored_files, 0);
}

TEST(KernelCache, KeepsOnDisk) {
  const std::string folder = NewFolder();
  {
    KernelCache cache(In(folder));
    EXPECT_EQ(cache.folder(), folder);
    EXPECT_TRUE(GivesMark(cache, 1));
    EXPECT_TRUE(GivesMark(cache, 2));
    EXPECT_EQ(cache.stats().compiled, 2);
    EXPECT_EQ(cache.stats().stored_files, 3) << "two libraries and a runtime";
  }
  KernelCache cache(In(folder));
  const auto never = []() -> absl::StatusOr<std::string> {
    ADD_FAILURE() << "it was there";
    return std::string();
  };
  ASSERT_OK_AND_ASSIGN(const LibraryPointer library,
                       cache.Get("mark 1", "target", never, never));
  EXPECT_EQ(MarkOf(*library), 1u);
  EXPECT_EQ(cache.stats().disk_hits, 1);
  // The runtime comes from the folder, too.
  ASSERT_THAT(
      cache.Get(
          "mark 3", "target",
          [] { return absl::StatusOr<std::string>(MarkedKernels(3)); }, never),
      IsOk());
  EXPECT_EQ(cache.stats().compiled, 1);
}

TEST(KernelCache, TellsKeysApart) {
  KernelCache cache(In(NewFolder()));
  const auto get = [&](absl::string_view key, absl::string_view runtime_key,
                       uint64_t mark) {
    const auto library = cache.Get(
        key, runtime_key,
        [&] { return absl::StatusOr<std::string>(MarkedKernels(mark)); },
        [] { return absl::StatusOr<std::string>(TestRuntime()); });
    EXPECT_THAT(library, IsOk());
    return library.ok() ? MarkOf(**library) : 0;
  };
  const std::string zero("\0", 1);
  EXPECT_EQ(get("ab", "c", 1), 1u);
  EXPECT_EQ(get("b", "ca", 2), 2u);
  EXPECT_EQ(get("", "cab", 3), 3u);
  EXPECT_EQ(get(zero, "cab", 4), 4u);
  EXPECT_EQ(get(std::string(100000, 'k'), "cab", 5), 5u);
}

TEST(KernelCache, CompilesAgainWhatIsDamaged) {
  const std::string folder = NewFolder();
  {
    KernelCache cache(In(folder));
    EXPECT_TRUE(GivesMark(cache, 1));
  }
  const std::string path = FileEnding(folder, ".o");
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
  std::vector<std::string> damaged = {"", whole.substr(0, whole.size() / 2),
                                      whole + "x"};
  // Headers, code, data, key, trailer.
  for (size_t i = 0; i < 40; ++i) {
    std::string flipped = whole;
    char& byte = flipped[i * (whole.size() - 1) / 39];
    byte = static_cast<char>(byte ^ 0x10);
    damaged.push_back(flipped);
  }
  for (const std::string& file : damaged) {
    ASSERT_THAT(WriteFileAtomically(path, file, Durability::kVolatile), IsOk());
    KernelCache cache(In(folder));
    EXPECT_TRUE(GivesMark(cache, 1));
    EXPECT_EQ(cache.stats().corrupt_files, 1);
    EXPECT_EQ(cache.stats().compiled, 1);
    EXPECT_EQ(cache.stats().stored_files, 1);
    ASSERT_OK_AND_ASSIGN(const std::string replaced, ReadFile(path));
    EXPECT_EQ(replaced, whole);
  }
}

TEST(KernelCache, CompilesAgainADamagedRuntime) {
  const std::string folder = NewFolder();
  {
    KernelCache cache(In(folder));
    EXPECT_TRUE(GivesMark(cache, 1));
  }
  ASSERT_THAT(WriteFileAtomically(FileEnding(folder, ".runtime"), "gone"),
              IsOk());
  KernelCache cache(In(folder));
  EXPECT_TRUE(GivesMark(cache, 2));
  EXPECT_EQ(cache.stats().corrupt_files, 1);
}

TEST(KernelCache, ReturnsErrorsAndForgetsThem) {
  KernelCache cache(In(NewFolder()));
  const auto fail = []() -> absl::StatusOr<std::string> {
    return absl::UnimplementedError("not supported: a test");
  };
  const auto kernels = [] {
    return absl::StatusOr<std::string>(MarkedKernels(1));
  };
  const auto runtime = [] {
    return absl::StatusOr<std::string>(TestRuntime());
  };
  const auto broken = [] { return absl::StatusOr<std::string>("broken"); };
  EXPECT_THAT(
      cache.Get("mark 1", "target", fail, runtime),
      StatusIs(absl::StatusCode::kUnimplemented, "not supported: a test"));
  EXPECT_THAT(cache.Get("mark 1", "target", kernels, fail),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(cache.Get("mark 1", "target", broken, runtime),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no kernel object")));
  EXPECT_EQ(cache.stats().failed, 3);
  EXPECT_TRUE(GivesMark(cache, 1));
  EXPECT_EQ(cache.stats().compiled, 1);
}

TEST(KernelCache, CompilesOnceForManyThreads) {
  KernelCache cache(In(NewFolder()));
  MarkedKernels(1);
  std::atomic<int> objects{0};
  std::atomic<int> runtimes{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      const uint64_t mark = 1 + t % 4;
      const auto library = cache.Get(
          absl::StrCat(mark), "target",
          [&] {
            ++objects;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return absl::StatusOr<std::string>(MarkedKernels(mark));
          },
          [&] {
            ++runtimes;
            return absl::StatusOr<std::string>(TestRuntime());
          });
      if (!library.ok() || MarkOf(**library) != mark) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(objects, 4);
  EXPECT_EQ(runtimes, 1);
  EXPECT_EQ(cache.stats().compiled, 4);
  EXPECT_EQ(cache.stats().memory_hits, 12);
}

TEST(KernelCache, GivesOneErrorToAllThatWait) {
  KernelCache cache((KernelCacheOptions()));
  std::atomic<int> calls{0};
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto make = [&]() -> absl::StatusOr<std::string> {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return absl::UnimplementedError("no");
      };
      if (absl::IsUnimplemented(cache.Get("k", "t", make, make).status())) {
        ++errors;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 8);
  // Who comes after the first has failed tries anew.
  EXPECT_LT(calls, 8);
}

// Each compiler waits for the other to have started.
TEST(KernelCache, CompilesDifferentKeysAtOnce) {
  KernelCache cache((KernelCacheOptions()));
  std::atomic<int> started{0};
  std::vector<std::thread> threads;
  for (uint64_t mark = 1; mark <= 2; ++mark) {
    threads.emplace_back([&, mark] {
      EXPECT_THAT(
          cache.Get(
              absl::StrCat(mark), "target",
              [&] {
                ++started;
                while (started < 2) std::this_thread::yield();
                return absl::StatusOr<std::string>(MarkedKernels(mark));
              },
              [] { return absl::StatusOr<std::string>(TestRuntime()); }),
          IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(KernelCache, EvictsTheLeastRecentlyUsed) {
  KernelCacheOptions options;
  options.max_libraries = 2;
  KernelCache cache(options);
  EXPECT_TRUE(GivesMark(cache, 1));
  EXPECT_TRUE(GivesMark(cache, 2));
  EXPECT_TRUE(GivesMark(cache, 1));
  EXPECT_TRUE(GivesMark(cache, 3));
  EXPECT_EQ(cache.stats().evicted_libraries, 1);
  EXPECT_TRUE(GivesMark(cache, 1));
  EXPECT_EQ(cache.stats().compiled, 3);
  EXPECT_TRUE(GivesMark(cache, 2));
  EXPECT_EQ(cache.stats().compiled, 4);
}

TEST(KernelCache, NeverUnloadsWhatIsInUse) {
  for (const int64_t kept : {0, 1}) {
    KernelCacheOptions options;
    options.max_libraries = kept;
    auto cache = std::make_unique<KernelCache>(options);
    ASSERT_OK_AND_ASSIGN(const LibraryPointer used, Get(*cache, 1));
    for (uint64_t mark = 2; mark < 5; ++mark) {
      EXPECT_TRUE(GivesMark(*cache, mark));
    }
    EXPECT_GE(cache->stats().evicted_libraries, 3);
    EXPECT_EQ(MarkOf(*used), 1u);
    ASSERT_OK_AND_ASSIGN(const LibraryPointer again, Get(*cache, 1));
    EXPECT_EQ(used, again) << "it was still loaded";
    cache = nullptr;
    EXPECT_EQ(MarkOf(*used), 1u);
  }
}

TEST(KernelCache, ManyThreadsWithEviction) {
  constexpr uint64_t kKeys = 24;
  const std::string folder = NewFolder();
  {
    KernelCache cache(In(folder));
    for (uint64_t mark = 1; mark <= kKeys; ++mark) {
      ASSERT_TRUE(GivesMark(cache, mark));
    }
  }
  KernelCacheOptions options = In(folder);
  options.max_libraries = 8;
  KernelCache cache(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 1000; ++i) {
        // Some keys are asked for more often than others.
        const uint64_t range = 1 + random() % kKeys;
        const uint64_t mark = 1 + random() % range;
        if (!GivesMark(cache, mark)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const KernelCacheStats stats = cache.stats();
  EXPECT_EQ(stats.compiled + stats.failed + stats.corrupt_files, 0);
  EXPECT_EQ(stats.memory_hits + stats.disk_hits, 32 * 1000);
  EXPECT_GT(stats.evicted_libraries, 100);
}

TEST(KernelCache, SharesAFolderAmongProcesses) {
  const std::string folder = NewFolder();
  MarkedKernels(1);  // compiled here, once
  TestRuntime();
  // Counts of both processes together: one may come when the other has compiled
  // all that it needs.
  struct Counts {
    std::atomic<int64_t> disk_hits{0};
    std::atomic<int64_t> compiled{0};
  };
  void* const shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const counts = new (shared) Counts;
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 2; ++process) {
    children.push_back(StartChild([&] {
      KernelCacheOptions options = In(folder);
      // Room for some of the kernels: they take each other's away.
      options.max_folder_bytes = 1000000;
      options.max_libraries = 3;
      KernelCache cache(options);
      std::mt19937 random(process);
      for (int i = 0; i < 100; ++i) {
        if (!GivesMark(cache, 1 + random() % 12)) return 1;
      }
      const KernelCacheStats stats = cache.stats();
      if (stats.failed + stats.corrupt_files + stats.not_stored_files != 0) {
        return 2;
      }
      counts->disk_hits += stats.disk_hits;
      counts->compiled += stats.compiled;
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(WaitForChild(child), 0);
  EXPECT_GT(counts->disk_hits, 0);
  EXPECT_GT(counts->compiled, 0);
  munmap(shared, sizeof(Counts));
}

TEST(KernelCache, SurvivesKilledProcesses) {
  constexpr uint64_t kKeys = 12;
  const std::string folder = NewFolder();
  MarkedKernels(1);
  TestRuntime();
  for (int round = 0; round < 6; ++round) {
    const pid_t child = StartChild([&] {
      while (true) {
        KernelCache cache(In(folder));
        for (uint64_t mark = 1; mark <= kKeys; ++mark) {
          if (!GivesMark(cache, mark, absl::StrCat(" round ", round))) return 1;
        }
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(31 * round));
    kill(child, SIGKILL);
    EXPECT_EQ(WaitForChild(child), -1);
    KernelCache cache(In(folder));
    for (uint64_t mark = 1; mark <= kKeys; ++mark) {
      EXPECT_TRUE(GivesMark(cache, mark, absl::StrCat(" round ", round)));
    }
    EXPECT_EQ(cache.stats().corrupt_files, 0);
    EXPECT_EQ(cache.stats().not_stored_files, 0);
  }
}

TEST(KernelCache, RunsWithAFullDisk) {
  const std::string folder = NewFolder();
  MarkedKernels(1);
  TestRuntime();
  EXPECT_EQ(RunInChild([&] {
              KernelCache cache(In(folder));
              if (!GivesMark(cache, 1)) return 1;
              // The kernels fit, but not one with such a key.
              LimitFileSize(400000);
              const std::string long_key(500000, 'k');
              if (!GivesMark(cache, 2, long_key)) return 2;
              const KernelCacheStats stats = cache.stats();
              if (stats.not_stored_files != 1) return 3;
              if (stats.store_error.ok()) return 4;
              // It is in memory.
              return GivesMark(cache, 2, long_key) &&
                             cache.stats().memory_hits == 1
                         ? 0
                         : 5;
            }),
            0);
  EXPECT_THAT(ListFolder(folder), SizeIs(2)) << "nothing half written is left";
}

// The same with a file system that is full; only root may mount one.
TEST(KernelCache, RunsWithAFullFileSystem) {
  const std::string folder = NewFolder();
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=150k,mode=0700") != 0) {
    CLEAVE_SKIP(kMayNotMount);
  }
  {
    KernelCache cache(In(folder));
    for (uint64_t mark = 1; mark <= 5; ++mark) {
      EXPECT_TRUE(GivesMark(cache, mark));
    }
    const KernelCacheStats stats = cache.stats();
    EXPECT_GT(stats.not_stored_files, 0);
    EXPECT_THAT(stats.store_error,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("No space left")));
    for (const std::string& name : ListFolder(folder)) {
      EXPECT_FALSE(absl::StrContains(name, kPartMark)) << name;
    }
  }
  EXPECT_EQ(umount(folder.c_str()), 0);
}

TEST(KernelCache, RunsWithAFolderThatItMayNotWrite) {
  const std::string folder = NewFolder();
  {
    KernelCache cache(In(folder));
    EXPECT_TRUE(GivesMark(cache, 1));
  }
  ASSERT_EQ(chmod(folder.c_str(), 0500), 0);
  EXPECT_EQ(RunInChild([&] {
              ObeyPermissions();
              KernelCache cache(In(folder));
              if (!GivesMark(cache, 1) || !GivesMark(cache, 2)) return 1;
              const KernelCacheStats stats = cache.stats();
              return stats.disk_hits == 1 && stats.compiled == 1 &&
                             stats.not_stored_files == 1 &&
                             absl::IsPermissionDenied(stats.store_error)
                         ? 0
                         : 2;
            }),
            0);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
}

TEST(KernelCache, RunsWithoutItsFolder) {
  const std::string file = NewFolder() + "/file";
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  KernelCache cache(In(file + "/cache"));
  EXPECT_EQ(cache.folder(), "");
  EXPECT_THAT(cache.folder_status().message(), HasSubstr(file));
  EXPECT_TRUE(GivesMark(cache, 1));
  // It may also go away later.
  const std::string folder = NewFolder();
  KernelCache other(In(folder));
  ASSERT_EQ(rmdir(folder.c_str()), 0);
  EXPECT_TRUE(GivesMark(other, 1));
  EXPECT_EQ(other.stats().not_stored_files, 2);
}

TEST(KernelCache, FindsItsDefaultFolder) {
  EXPECT_EQ(RunInChild([] {
              setenv("HOME", "/home/someone", 1);
              unsetenv("CLEAVE_CACHE");
              unsetenv("XDG_CACHE_HOME");
              if (DefaultCacheFolder() != "/home/someone/.cache/cleave") {
                return 1;
              }
              setenv("XDG_CACHE_HOME", "relative", 1);
              if (DefaultCacheFolder() != "/home/someone/.cache/cleave") {
                return 2;
              }
              setenv("XDG_CACHE_HOME", "/somewhere", 1);
              if (DefaultCacheFolder() != "/somewhere/cleave") return 3;
              setenv("CLEAVE_CACHE", "/chosen", 1);
              if (DefaultCacheFolder() != "/chosen") return 4;
              setenv("CLEAVE_CACHE", "", 1);
              if (!DefaultCacheFolder().empty()) return 5;
              return DefaultKernelCache().folder().empty() ? 0 : 6;
            }),
            0);
}

}  // namespace
}  // namespace cleave
