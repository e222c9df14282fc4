#include "engine/runtime/object_loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/runtime/object_file.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGotEntry = 8;
constexpr uint64_t kStub = 16;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// LeakSanitizer looks for pointers in the data of loaded libraries, and takes
// what a loaded object alone points to for lost, unless it is told.
void NoteMapping([[maybe_unused]] const void* base,
                 [[maybe_unused]] size_t size) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_register_root_region(base, size);
#endif
}

void ForgetMapping([[maybe_unused]] const void* base,
                   [[maybe_unused]] size_t size) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_unregister_root_region(base, size);
#endif
}

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot load a kernel object: ", parts...));
}

}  // namespace

// Places one object: sections that are alike lie together, each kind in pages
// of its own, and the whole in one mapping, within the reach of 32 bits.
class ObjectPlacer {
 public:
  ObjectPlacer(const ObjectFile& object,
               std::shared_ptr<const LoadedObject> needed)
      : object_(object), result_(new LoadedObject) {
    result_->needed_ = std::move(needed);
  }

  absl::StatusOr<std::shared_ptr<const LoadedObject>> Place() {
    CLEAVE_RETURN_IF_ERROR(Resolve());
    Lay();
    CLEAVE_RETURN_IF_ERROR(Map());
    for (const ObjectRelocation& relocation : object_.relocations) {
      CLEAVE_RETURN_IF_ERROR(Relocate(relocation));
    }
    CLEAVE_RETURN_IF_ERROR(Protect());
    Publish();
    return std::shared_ptr<const LoadedObject>(std::move(result_));
  }

 private:
  enum Kind { kCode, kReadOnly, kWritable, kKinds };

  static bool ByTable(uint32_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
  }

  // The addresses of symbols that are not the object's, and which symbols need
  // an entry of the table of addresses or a stub to jump by.
  absl::Status Resolve() {
    outside_.assign(object_.symbols.size(), 0);
    table_.assign(object_.symbols.size(), -1);
    stubs_.assign(object_.symbols.size(), -1);
    for (const ObjectRelocation& relocation : object_.relocations) {
      const uint32_t s = relocation.symbol;
      const ObjectSymbol& symbol = object_.symbols[s];
      if (symbol.place == ObjectSymbol::Place::kUndefined && outside_[s] == 0 &&
          !symbol.name.empty()) {
        void* address = nullptr;
        if (result_->needed_ != nullptr) {
          address = result_->needed_->Find(symbol.name);
        }
        if (address == nullptr) address = FindSystemSymbol(symbol.name);
        if (address == nullptr && !symbol.weak) {
          return Bad("nothing defines `", symbol.name, "`");
        }
        outside_[s] = reinterpret_cast<uint64_t>(address);
      }
      const bool outside = symbol.place == ObjectSymbol::Place::kUndefined;
      const bool far = outside && relocation.type == R_X86_64_PLT32;
      if ((ByTable(relocation.type) || far) && table_[s] < 0) {
        table_[s] = table_count_++;
      }
      if (far && stubs_[s] < 0) stubs_[s] = stub_count_++;
    }
    return absl::OkStatus();
  }

  static Kind KindOf(const ObjectSection& section) {
    if (section.executable) return kCode;
    return section.writable ? kWritable : kReadOnly;
  }

  // Offsets in the mapping. Parse has bounded the sum of the sizes.
  void Lay() {
    offsets_.resize(object_.sections.size());
    uint64_t at = 0;
    for (int kind = 0; kind < kKinds; ++kind) {
      begins_[kind] = at;
      for (size_t i = 0; i < object_.sections.size(); ++i) {
        const ObjectSection& section = object_.sections[i];
        if (KindOf(section) != kind) continue;
        at = RoundUp(at, section.alignment);
        offsets_[i] = at;
        at += section.size;
      }
      if (kind == kCode) {
        stubs_at_ = RoundUp(at, kStub);
        at = stubs_at_ + stub_count_ * kStub;
      }
      if (kind == kReadOnly) {
        table_at_ = RoundUp(at, kGotEntry);
        at = table_at_ + table_count_ * kGotEntry;
      }
      // Vector code may read up to a line behind what it needs.
      at = RoundUp(at + 64, kPage);
    }
    result_->size_ = at;
  }

  absl::Status Map() {
    void* const memory = mmap(nullptr, result_->size_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", result_->size_,
                       " bytes of kernels: ", std::strerror(errno)));
    }
    result_->base_ = static_cast<uint8_t*>(memory);
    NoteMapping(memory, result_->size_);
    for (size_t i = 0; i < object_.sections.size(); ++i) {
      const absl::string_view bytes = object_.sections[i].bytes;
      if (bytes.empty()) continue;
      std::memcpy(result_->base_ + offsets_[i], bytes.data(), bytes.size());
    }
    for (size_t s = 0; s < table_.size(); ++s) {
      if (table_[s] >= 0) Write(TableEntry(s), AddressOf(s));
      if (stubs_[s] < 0) continue;
      // jmp *entry(%rip); the table lies within the mapping, so within reach.
      const uint64_t stub = StubOf(s);
      auto* const code = reinterpret_cast<uint8_t*>(stub);
      const auto distance = static_cast<int32_t>(TableEntry(s) - (stub + 6));
      code[0] = 0xff;
      code[1] = 0x25;
      std::memcpy(code + 2, &distance, sizeof distance);
      std::memset(code + 6, 0xcc, kStub - 6);
    }
    return absl::OkStatus();
  }

  uint64_t Base() const { return reinterpret_cast<uint64_t>(result_->base_); }
  uint64_t TableEntry(size_t symbol) const {
    return Base() + table_at_ + table_[symbol] * kGotEntry;
  }
  uint64_t StubOf(size_t symbol) const {
    return Base() + stubs_at_ + stubs_[symbol] * kStub;
  }

  uint64_t AddressOf(size_t s) const {
    const ObjectSymbol& symbol = object_.symbols[s];
    switch (symbol.place) {
      case ObjectSymbol::Place::kSection:
        return Base() + offsets_[symbol.section] + symbol.value;
      case ObjectSymbol::Place::kAbsolute:
        return symbol.value;
      default:
        return outside_[s];
    }
  }

  template <typename T>
  static void Write(uint64_t address, T value) {
    std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
  }

  absl::Status Relocate(const ObjectRelocation& relocation) const {
    const uint64_t place =
        Base() + offsets_[relocation.section] + relocation.offset;
    const uint32_t s = relocation.symbol;
    uint64_t target = AddressOf(s);
    if (ByTable(relocation.type)) {
      target = TableEntry(s);
    } else if (relocation.type == R_X86_64_PLT32 && stubs_[s] >= 0) {
      target = StubOf(s);
    }
    // Unsigned, as addresses are: an addend from a file may be any.
    target += static_cast<uint64_t>(relocation.addend);
    const auto distance = static_cast<int64_t>(target - place);
    switch (relocation.type) {
      case R_X86_64_64:
        Write(place, target);
        return absl::OkStatus();
      case R_X86_64_PC64:
        Write(place, distance);
        return absl::OkStatus();
      case R_X86_64_32:
        if (target > std::numeric_limits<uint32_t>::max()) break;
        Write(place, static_cast<uint32_t>(target));
        return absl::OkStatus();
      case R_X86_64_32S: {
        const auto extended = static_cast<int64_t>(target);
        if (extended != static_cast<int32_t>(extended)) break;
        Write(place, static_cast<int32_t>(extended));
        return absl::OkStatus();
      }
      default:  // relative to the place, in 32 bits
        if (distance != static_cast<int32_t>(distance)) break;
        Write(place, static_cast<int32_t>(distance));
        return absl::OkStatus();
    }
    return Bad("`", object_.symbols[s].name, "` is out of reach");
  }

  absl::Status Protect() const {
    for (int kind = 0; kind < kKinds; ++kind) {
      if (kind == kWritable) continue;
      const uint64_t end = begins_[kind + 1];
      const int access = kind == kCode ? PROT_READ | PROT_EXEC : PROT_READ;
      if (mprotect(result_->base_ + begins_[kind], end - begins_[kind],
                   access) == 0) {
        continue;
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "the system gives no memory for code: ", std::strerror(errno)));
    }
    return absl::OkStatus();
  }

  // The pointers, as relocation has written them, that lie in the object's
  // code.
  std::vector<void (*)()> FunctionsIn(bool ObjectSection::*role) const {
    std::vector<void (*)()> functions;
    for (size_t i = 0; i < object_.sections.size(); ++i) {
      const ObjectSection& section = object_.sections[i];
      if (!(section.*role)) continue;
      for (uint64_t at = 0; at + sizeof(uint64_t) <= section.bytes.size();
           at += sizeof(uint64_t)) {
        uint64_t address;
        std::memcpy(&address, result_->base_ + offsets_[i] + at,
                    sizeof address);
        if (address - Base() >= begins_[kReadOnly]) continue;
        functions.push_back(reinterpret_cast<void (*)()>(address));
      }
    }
    return functions;
  }

  void Publish() {
    result_->initializers_ = FunctionsIn(&ObjectSection::is_initializers);
    result_->finalizers_ = FunctionsIn(&ObjectSection::is_finalizers);
    for (size_t s = 0; s < object_.symbols.size(); ++s) {
      const ObjectSymbol& symbol = object_.symbols[s];
      if (!symbol.global || symbol.place != ObjectSymbol::Place::kSection) {
        continue;
      }
      result_->symbols_.try_emplace(std::string(symbol.name),
                                    reinterpret_cast<void*>(AddressOf(s)));
    }
  }

  const ObjectFile& object_;
  std::unique_ptr<LoadedObject> result_;
  std::vector<uint64_t> offsets_;  // per section
  // Where each kind begins; all end at pages.
  std::array<uint64_t, kKinds> begins_ = {};
  // Per symbol.
  std::vector<uint64_t> outside_;
  std::vector<int64_t> table_;  // its entry; -1 for none
  std::vector<int64_t> stubs_;
  int64_t table_count_ = 0;
  int64_t stub_count_ = 0;
  uint64_t table_at_ = 0;
  uint64_t stubs_at_ = 0;
};

absl::StatusOr<std::shared_ptr<const LoadedObject>> LoadedObject::Load(
    absl::string_view bytes, std::shared_ptr<const LoadedObject> needed) {
  CLEAVE_ASSIGN_OR_RETURN(const ObjectFile object, ObjectFile::Parse(bytes));
  return ObjectPlacer(object, std::move(needed)).Place();
}

LoadedObject::~LoadedObject() {
  if (base_ == nullptr) return;
  ForgetMapping(base_, size_);
  munmap(base_, size_);
}

void* LoadedObject::Find(absl::string_view name) const {
  const auto it = symbols_.find(name);
  return it == symbols_.end() ? nullptr : it->second;
}

}  // namespace cleave::internal_kernel
