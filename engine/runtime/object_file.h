// ObjectFile: the sections, symbols and relocations of an ELF64 relocatable
// object for x86-64, checked against its size: bytes from anywhere.
//
//   ASSERT_OK_AND_ASSIGN(const ObjectFile object, ObjectFile::Parse(bytes));
//   for (const ObjectSymbol& symbol : object.symbols) ..
//
// A parsed object is safe to place and to relocate: each section lies in the
// bytes, each index is of a section or symbol that is there, and each place
// that is patched lies in its section. The loader (object_loader.h) computes
// addresses alone.

#ifndef CLEAVE_ENGINE_RUNTIME_OBJECT_FILE_H_
#define CLEAVE_ENGINE_RUNTIME_OBJECT_FILE_H_

#include <elf.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave::internal_kernel {

// A section that has memory when it runs.
struct ObjectSection {
  absl::string_view bytes;  // shorter than `size` for zeros: all of them
  uint64_t size = 0;
  uint64_t alignment = 1;  // a power of two, at most a page
  bool writable = false;
  bool executable = false;
  // Pointers to functions, for when it is loaded and unloaded.
  bool is_initializers = false;
  bool is_finalizers = false;
};

struct ObjectSymbol {
  enum class Place {
    kUndefined,  // of another object, or of the system
    kAbsolute,   // `value` is its address
    kSection,    // `value` is its offset in `section`
    kDropped,    // in a section without memory
  };
  absl::string_view name;
  Place place = Place::kUndefined;
  uint64_t value = 0;
  uint32_t section = 0;  // in ObjectFile::sections
  bool global = false;   // seen by others
  bool weak = false;     // 0 where it is undefined and nobody defines it
};

struct ObjectRelocation {
  uint32_t section = 0;  // what is patched: in ObjectFile::sections
  uint64_t offset = 0;   // where; its 4 or 8 bytes lie in the section
  uint32_t type = 0;     // R_X86_64_64, ..
  uint32_t symbol = 0;   // in ObjectFile::symbols
  int64_t addend = 0;
};

struct ObjectFile {
  // Views of `bytes`, which outlive it. InvalidArgument for what is no such
  // object, is damaged, or has something that no kernel needs: thread-local
  // data, compressed sections, indirect functions, other relocations. Common
  // symbols become sections of zeros. O(bytes).
  static absl::StatusOr<ObjectFile> Parse(absl::string_view bytes);

  std::vector<ObjectSection> sections;
  std::vector<ObjectSymbol> symbols;  // the first is undefined, without a name
  std::vector<ObjectRelocation> relocations;
};

// The bytes that a relocation of this type patches: 4 or 8; 0 for one that
// Parse refuses.
int RelocationWidth(uint32_t type);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_OBJECT_FILE_H_
