#include "engine/files/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cleave {
namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

size_t RoundUpTo4(size_t size) { return (size + 3) / 4 * 4; }

// The build id among the notes of one segment; empty if there is none.
std::string FindNote(const char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t name = sizeof(header);
    const size_t bytes = name + RoundUpTo4(header.n_namesz);
    const size_t end = bytes + RoundUpTo4(header.n_descsz);
    if (end > size) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      return std::string(notes + bytes, header.n_descsz);
    }
    notes += end;
    size -= end;
  }
  return "";
}

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const auto* const begin = info->dlpi_phdr;
  const auto* const end = begin + info->dlpi_phnum;
  bool contains = false;
  for (const auto* segment = begin; segment != end; ++segment) {
    const uintptr_t first = info->dlpi_addr + segment->p_vaddr;
    contains =
        contains || (segment->p_type == PT_LOAD && search.address >= first &&
                     search.address - first < segment->p_memsz);
  }
  if (!contains) return 0;
  for (const auto* segment = begin; segment != end; ++segment) {
    if (segment->p_type != PT_NOTE || !search.id.empty()) continue;
    search.id = FindNote(
        reinterpret_cast<const char*>(info->dlpi_addr + segment->p_vaddr),
        segment->p_memsz);
  }
  return 1;
}

}  // namespace

std::string BuildIdOf(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(Visit, &search);
  return search.id;
}

}  // namespace cleave
