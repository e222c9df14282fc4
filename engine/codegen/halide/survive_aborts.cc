#include "engine/codegen/halide/survive_aborts.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdio.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

// <assert.h> does not declare it where NDEBUG is defined.
extern "C" [[noreturn]] void __assert_fail(const char* assertion,
                                           const char* file, unsigned int line,
                                           const char* function) noexcept;

namespace cleave {
namespace {

// Where a thread's call of SurviveAborts goes on, and why it does. The message
// needs no memory: that may be what LLVM lacks.
struct Recovery {
  jmp_buf place;
  char why[1024];
};

thread_local Recovery* recovery = nullptr;

[[noreturn]] void GoOn() {
  Recovery* const here = recovery;
  recovery = nullptr;
  longjmp(here->place, 1);
}

[[noreturn]] void FailAssertion(const char* assertion, const char* file,
                                unsigned int line, const char* function) {
  if (recovery == nullptr) __assert_fail(assertion, file, line, function);
  snprintf(recovery->why, sizeof(recovery->why), "assertion `%s` failed, %s:%u",
           assertion, file, line);
  GoOn();
}

[[noreturn]] void Abort() {
  if (recovery == nullptr) std::abort();
  snprintf(recovery->why, sizeof(recovery->why), "abort()");
  GoOn();
}

[[noreturn]] void Exit(int status) {
  if (recovery == nullptr) std::exit(status);
  snprintf(recovery->why, sizeof(recovery->why), "exit(%d)", status);
  GoOn();
}

// The function that the shared object calls instead of the C library's.
void* Replacement(const char* name) {
  if (std::strcmp(name, "__assert_fail") == 0) {
    return reinterpret_cast<void*>(&FailAssertion);
  }
  if (std::strcmp(name, "abort") == 0) return reinterpret_cast<void*>(&Abort);
  if (std::strcmp(name, "exit") == 0) return reinterpret_cast<void*>(&Exit);
  return nullptr;
}

// Fills the slots by which a shared object calls other objects' functions
// (ELF, System V ABI for x86-64: "Procedure Linkage Table").
void Redirect(const link_map& object) {
  // The dynamic linker makes addresses of the offsets of most objects.
  const auto address = [&](const ElfW(Dyn) & entry) {
    const ElfW(Addr) p = entry.d_un.d_ptr;
    return p < object.l_addr ? object.l_addr + p : p;
  };
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* slots = nullptr;
  size_t bytes = 0;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        symbols = reinterpret_cast<const ElfW(Sym)*>(address(*entry));
        break;
      case DT_STRTAB:
        names = reinterpret_cast<const char*>(address(*entry));
        break;
      case DT_JMPREL:
        slots = reinterpret_cast<const ElfW(Rela)*>(address(*entry));
        break;
      case DT_PLTRELSZ:
        bytes = entry->d_un.d_val;
        break;
      // Slots that are filled as it is loaded cannot be written to. Halide's
      // wheels are not linked so.
      case DT_FLAGS:
        if ((entry->d_un.d_val & DF_BIND_NOW) != 0) return;
        break;
      case DT_FLAGS_1:
        if ((entry->d_un.d_val & DF_1_NOW) != 0) return;
        break;
      default:
        break;
    }
  }
  if (symbols == nullptr || names == nullptr || slots == nullptr) return;
  for (size_t i = 0; i < bytes / sizeof(*slots); ++i) {
    if (ELF64_R_TYPE(slots[i].r_info) != R_X86_64_JUMP_SLOT) continue;
    const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(slots[i].r_info)];
    void* const replacement = Replacement(names + symbol.st_name);
    if (replacement == nullptr) continue;
    auto* const slot =
        reinterpret_cast<void**>(object.l_addr + slots[i].r_offset);
    __atomic_store_n(slot, replacement, __ATOMIC_RELAXED);
  }
}

}  // namespace

absl::Status SurviveAborts(const void* function,
                           absl::FunctionRef<void()> run) {
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(function, &info, &map, RTLD_DL_LINKMAP) != 0) {
    Redirect(*static_cast<const link_map*>(map));
  }
  Recovery here;
  // Where this returns a second time, nothing that it left is read but `here`.
  if (setjmp(here.place) != 0) {
    return absl::AbortedError(absl::StrCat("LLVM: ", here.why));
  }
  recovery = &here;
  try {
    run();
  } catch (...) {
    recovery = nullptr;
    throw;
  }
  recovery = nullptr;
  return absl::OkStatus();
}

}  // namespace cleave
