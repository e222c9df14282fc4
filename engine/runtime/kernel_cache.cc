#include "engine/runtime/kernel_cache.h"

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/files/cache_folder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using LibraryPointer = std::shared_ptr<const KernelLibrary>;
using RuntimePointer = std::shared_ptr<const KernelRuntime>;

// The work of one thread on a key, for which others may wait.
struct Flight {
  std::optional<absl::StatusOr<LibraryPointer>> result;
  std::condition_variable landed;
};

struct Entry {
  LibraryPointer library;             // null: not kept
  std::list<Entry*>::iterator place;  // in the list of what is kept
  // A library that was evicted but is still in use is not loaded twice.
  std::weak_ptr<const KernelLibrary> loaded;
  std::shared_ptr<Flight> flight;  // null: nobody works on it
};

}  // namespace

class KernelCache::Impl {
 public:
  explicit Impl(KernelCacheOptions options) : options_(std::move(options)) {
    if (options_.folder.empty()) return;
    absl::StatusOr<std::unique_ptr<CacheFolder>> folder =
        CacheFolder::Open(options_.folder, options_.max_folder_bytes);
    if (folder.ok()) {
      folder_ = *std::move(folder);
    } else {
      folder_status_ = std::move(folder).status();
    }
  }

  absl::StatusOr<LibraryPointer> Get(absl::string_view key,
                                     absl::string_view runtime_key,
                                     MakeBytes make_object,
                                     MakeBytes make_runtime) {
    // The length keeps (ab, c) and (a, bc) apart.
    const std::string full_key =
        absl::StrCat(runtime_key.size(), ":", runtime_key, key);
    std::unique_lock<std::mutex> lock(mutex_);
    std::unique_ptr<Entry>& slot = entries_[full_key];
    if (slot == nullptr) slot = std::make_unique<Entry>();
    Entry* const entry = slot.get();
    if (entry->library == nullptr) Keep(entry, entry->loaded.lock());
    if (entry->library != nullptr) {
      ++stats_.memory_hits;
      used_.splice(used_.begin(), used_, entry->place);
      LibraryPointer library = entry->library;
      const std::vector<LibraryPointer> evicted = Evict();
      lock.unlock();
      return library;
    }
    if (const std::shared_ptr<Flight> flight = entry->flight) {
      // The entry may be gone when it lands: the flight is not.
      flight->landed.wait(lock, [&] { return flight->result.has_value(); });
      if (flight->result->ok()) ++stats_.memory_hits;
      return *flight->result;
    }
    const auto flight = std::make_shared<Flight>();
    entry->flight = flight;
    lock.unlock();
    absl::StatusOr<LibraryPointer> library =
        Make(full_key, runtime_key, make_object, make_runtime);
    lock.lock();
    // Nobody removes an entry that has a flight.
    flight->result = library;
    flight->landed.notify_all();
    entry->flight = nullptr;
    std::vector<LibraryPointer> evicted;
    if (library.ok()) {
      Keep(entry, *library);
      evicted = Evict();
    } else {
      ++stats_.failed;
      entries_.erase(full_key);
    }
    lock.unlock();
    return library;
  }

  const std::string& folder() const {
    static const auto* const none = new std::string;
    return folder_ != nullptr ? folder_->path() : *none;
  }
  absl::Status folder_status() const { return folder_status_; }

  KernelCacheStats stats() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    KernelCacheStats stats = stats_;
    if (folder_ != nullptr) stats.evicted_files = folder_->evicted();
    return stats;
  }

 private:
  // Its mutex is held while it is made.
  struct Runtime {
    std::mutex mutex;
    RuntimePointer loaded;
  };

  // The three below want mutex_ held.
  void Keep(Entry* entry, LibraryPointer library) {
    if (library == nullptr) return;
    used_.push_front(entry);
    entry->place = used_.begin();
    entry->loaded = library;
    entry->library = std::move(library);
  }

  // Returns what is no longer kept, to be let go of without mutex_: unloading
  // takes time.
  std::vector<LibraryPointer> Evict() {
    std::vector<LibraryPointer> evicted;
    while (static_cast<int64_t>(used_.size()) > options_.max_libraries) {
      Entry* const entry = used_.back();
      used_.pop_back();
      evicted.push_back(std::exchange(entry->library, nullptr));
      ++stats_.evicted_libraries;
    }
    if (!evicted.empty()) RemoveUnloaded();
    return evicted;
  }

  // Entries that are neither kept nor in use take little: now and then is
  // enough.
  void RemoveUnloaded() {
    if (entries_.size() < 2 * used_.size() + 64) return;
    for (auto it = entries_.begin(); it != entries_.end();) {
      const Entry& entry = *it->second;
      const bool unloaded = entry.library == nullptr &&
                            entry.flight == nullptr && entry.loaded.expired();
      if (unloaded) {
        entries_.erase(it++);
      } else {
        ++it;
      }
    }
  }

  void Count(int64_t KernelCacheStats::*counter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++(stats_.*counter);
  }

  // Loads or compiles.
  absl::StatusOr<LibraryPointer> Make(const std::string& full_key,
                                      absl::string_view runtime_key,
                                      MakeBytes make_object,
                                      MakeBytes make_runtime) {
    const std::optional<std::string> stored = Fetch(full_key, kLibrary);
    if (stored.has_value()) {
      CLEAVE_ASSIGN_OR_RETURN(RuntimePointer runtime,
                              GetRuntime(runtime_key, make_runtime));
      absl::StatusOr<LibraryPointer> library =
          KernelLibrary::Load(*stored, std::move(runtime));
      if (library.ok()) {
        Count(&KernelCacheStats::disk_hits);
        return library;
      }
      if (!absl::IsInvalidArgument(library.status())) return library;
      // It is whole but does not load here: the folder came from elsewhere, or
      // the system has changed.
      Count(&KernelCacheStats::corrupt_files);
    }
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const auto start = now();
    CLEAVE_ASSIGN_OR_RETURN(const std::string object, make_object());
    const auto made = now();
    CLEAVE_ASSIGN_OR_RETURN(RuntimePointer runtime,
                            GetRuntime(runtime_key, make_runtime));
    const auto loading = now();
    CLEAVE_ASSIGN_OR_RETURN(LibraryPointer library,
                            KernelLibrary::Load(object, std::move(runtime)));
    const std::chrono::duration<double, std::milli> taken =
        (made - start) + (now() - loading);
    Store(full_key, kLibrary, object);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++stats_.compiled;
    stats_.compile_milliseconds.push_back(taken.count());
    return library;
  }

  absl::StatusOr<RuntimePointer> GetRuntime(absl::string_view runtime_key,
                                            MakeBytes make_runtime) {
    Runtime* runtime;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::unique_ptr<Runtime>& slot = runtimes_[runtime_key];
      if (slot == nullptr) slot = std::make_unique<Runtime>();
      runtime = slot.get();  // never removed
    }
    const std::lock_guard<std::mutex> lock(runtime->mutex);
    if (runtime->loaded != nullptr) return runtime->loaded;
    const std::string key(runtime_key);
    if (const std::optional<std::string> stored = Fetch(key, kRuntime)) {
      absl::StatusOr<RuntimePointer> loaded = KernelRuntime::Load(*stored);
      if (loaded.ok()) return runtime->loaded = *std::move(loaded);
      if (!absl::IsInvalidArgument(loaded.status())) return loaded;
      Count(&KernelCacheStats::corrupt_files);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::string object, make_runtime());
    CLEAVE_ASSIGN_OR_RETURN(runtime->loaded, KernelRuntime::Load(object));
    Store(key, kRuntime, object);
    return runtime->loaded;
  }

  // The bytes that the folder holds under the key; none if there are none, or
  // if they are damaged.
  std::optional<std::string> Fetch(const std::string& key, const char* kind) {
    if (folder_ == nullptr) return std::nullopt;
    absl::StatusOr<std::optional<std::string>> bytes = folder_->Read(key, kind);
    if (bytes.ok()) return *std::move(bytes);
    Count(&KernelCacheStats::corrupt_files);
    return std::nullopt;
  }

  void Store(const std::string& key, const char* kind,
             absl::string_view bytes) {
    if (folder_ == nullptr) return;
    absl::Status stored = folder_->Write(key, kind, bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stored.ok()) {
      ++stats_.stored_files;
    } else {
      ++stats_.not_stored_files;
      stats_.store_error = std::move(stored);
    }
  }

  static constexpr char kLibrary[] = ".o";
  static constexpr char kRuntime[] = ".runtime";

  const KernelCacheOptions options_;
  std::unique_ptr<CacheFolder> folder_;  // null: memory only
  absl::Status folder_status_;

  mutable std::mutex mutex_;
  // Guarded by mutex_, as are the next; entries stay where they are.
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_;
  std::list<Entry*> used_;  // what is kept, the most recently used first
  absl::flat_hash_map<std::string, std::unique_ptr<Runtime>> runtimes_;
  KernelCacheStats stats_;
};

KernelCache::KernelCache(KernelCacheOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

KernelCache::~KernelCache() = default;

absl::StatusOr<std::shared_ptr<const KernelLibrary>> KernelCache::Get(
    absl::string_view key, absl::string_view runtime_key, MakeBytes make_object,
    MakeBytes make_runtime) {
  return impl_->Get(key, runtime_key, make_object, make_runtime);
}

const std::string& KernelCache::folder() const { return impl_->folder(); }

absl::Status KernelCache::folder_status() const {
  return impl_->folder_status();
}

KernelCacheStats KernelCache::stats() const { return impl_->stats(); }

KernelCache& DefaultKernelCache() {
  static auto* const cache = [] {
    KernelCacheOptions options;
    options.folder = DefaultCacheFolder();
    return new KernelCache(std::move(options));
  }();
  return *cache;
}

}  // namespace cleave
