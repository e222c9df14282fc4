#include "engine/runtime/object_loader.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/halide/kernel_testing.h"
#include "engine/runtime/object_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::internal_kernel {
namespace {

using ::testing::HasSubstr;
using Pointer = std::shared_ptr<const LoadedObject>;

// An object of a few sections and symbols, made by hand.
class ObjectMaker {
 public:
  ObjectMaker() {
    Section("", SHT_NULL, 0, "");
    symbols_.emplace_back();
  }

  uint32_t Section(const std::string& name, uint32_t type, uint64_t flags,
                   const std::string& bytes, uint64_t alignment = 16) {
    Elf64_Shdr header = {};
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_size = bytes.size();
    header.sh_addralign = alignment;
    headers_.push_back(header);
    contents_.push_back(bytes);
    return static_cast<uint32_t>(headers_.size() - 1);
  }
  uint32_t Code(const std::string& bytes) {
    return Section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, bytes);
  }
  uint32_t Data(const std::string& bytes) {
    return Section(".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, bytes);
  }
  uint32_t Zeros(uint64_t size) {
    const uint32_t section =
        Section(".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "");
    headers_[section].sh_size = size;
    return section;
  }

  uint32_t Symbol(const std::string& name, uint32_t section, uint64_t value = 0,
                  uint64_t size = 0, unsigned binding = STB_GLOBAL,
                  unsigned type = STT_NOTYPE) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<uint32_t>(names_.size());
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(binding, type));
    symbol.st_shndx = static_cast<uint16_t>(section);
    symbol.st_value = value;
    symbol.st_size = size;
    names_ += name;
    names_.push_back('\0');
    symbols_.push_back(symbol);
    return static_cast<uint32_t>(symbols_.size() - 1);
  }

  void Relocate(uint32_t section, uint64_t offset, uint32_t type,
                uint32_t symbol, int64_t addend = 0) {
    Elf64_Rela entry = {};
    entry.r_offset = offset;
    entry.r_info = ELF64_R_INFO(uint64_t{symbol}, type);
    entry.r_addend = addend;
    relocations_.emplace_back(section, entry);
  }

  std::string Make() {
    const uint32_t strings = Section(".strtab", SHT_STRTAB, 0, names_, 1);
    const uint32_t table = Section(".symtab", SHT_SYMTAB, 0,
                                   Bytes(symbols_.data(), symbols_.size()), 8);
    headers_[table].sh_link = strings;
    headers_[table].sh_entsize = sizeof(Elf64_Sym);
    for (const auto& [section, entry] : relocations_) {
      const uint32_t header =
          Section(".rela", SHT_RELA, 0, Bytes(&entry, 1), 8);
      headers_[header].sh_link = table;
      headers_[header].sh_info = section;
      headers_[header].sh_entsize = sizeof(Elf64_Rela);
    }
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_REL;
    header.e_machine = EM_X86_64;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(headers_.size());
    std::string file(sizeof header, '\0');
    for (size_t i = 0; i < headers_.size(); ++i) {
      headers_[i].sh_offset = file.size();
      file += contents_[i];
    }
    header.e_shoff = file.size();
    file += Bytes(headers_.data(), headers_.size());
    std::memcpy(file.data(), &header, sizeof header);
    return file;
  }

 private:
  template <typename T>
  static std::string Bytes(const T* values, size_t count) {
    return std::string(reinterpret_cast<const char*>(values),
                       count * sizeof(T));
  }

  std::vector<Elf64_Shdr> headers_;
  std::vector<std::string> contents_;
  std::vector<Elf64_Sym> symbols_;
  std::string names_ = std::string(1, '\0');
  std::vector<std::pair<uint32_t, Elf64_Rela>> relocations_;
};

// mov eax, [rip + x]; ret
const std::string kLoad("\x8b\x05\0\0\0\0\xc3", 7);
// mov rax, [rip + x]; mov eax, [rax]; ret
const std::string kLoadByTable("\x48\x8b\x05\0\0\0\0\x8b\x00\xc3", 10);
// jmp x
const std::string kJump("\xe9\0\0\0\0", 5);

int Answer(const Pointer& object, const char* name) {
  void* const function = object->Find(name);
  EXPECT_NE(function, nullptr) << name;
  return reinterpret_cast<int (*)()>(function)();
}

TEST(ObjectLoader, RelocatesWithinAnObject) {
  ObjectMaker maker;
  const uint32_t code = maker.Code(kLoad + kLoadByTable);
  const uint32_t data = maker.Data(std::string("\x2a\0\0\0\x2b\0\0\0", 8));
  const uint32_t value = maker.Symbol("value", data, 4);
  maker.Symbol("direct", code);
  maker.Symbol("by_table", code, 7);
  maker.Relocate(code, 2, R_X86_64_PC32, value, -4);
  maker.Relocate(code, 10, R_X86_64_REX_GOTPCRELX, value, -4);
  ASSERT_OK_AND_ASSIGN(const Pointer object,
                       LoadedObject::Load(maker.Make(), nullptr));
  EXPECT_EQ(Answer(object, "direct"), 0x2b);
  EXPECT_EQ(Answer(object, "by_table"), 0x2b);
  EXPECT_EQ(object->Find("nothing"), nullptr);
}

TEST(ObjectLoader, CallsWhatItNeedsHoweverFar) {
  ObjectMaker first;
  const uint32_t code = first.Code(kLoad);
  const uint32_t data = first.Data(std::string("\x07\0\0\0", 4));
  first.Relocate(code, 2, R_X86_64_PC32, first.Symbol("value", data), -4);
  first.Symbol("seven", code);
  ASSERT_OK_AND_ASSIGN(const Pointer needed,
                       LoadedObject::Load(first.Make(), nullptr));
  ObjectMaker second;
  const uint32_t jump = second.Code(kJump + kLoadByTable);
  second.Symbol("call", jump);
  second.Symbol("read", jump, 5);
  second.Relocate(jump, 1, R_X86_64_PLT32, second.Symbol("seven", SHN_UNDEF),
                  -4);
  second.Relocate(jump, 8, R_X86_64_GOTPCREL, second.Symbol("value", SHN_UNDEF),
                  -4);
  const std::string bytes = second.Make();
  ASSERT_OK_AND_ASSIGN(const Pointer object, LoadedObject::Load(bytes, needed));
  EXPECT_EQ(Answer(object, "call"), 7);
  EXPECT_EQ(Answer(object, "read"), 7);
  EXPECT_EQ(object->needed(), needed);
  EXPECT_THAT(LoadedObject::Load(bytes, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing defines `seven`")));
}

TEST(ObjectLoader, PlacesZerosCommonSymbolsAndPointers) {
  ObjectMaker maker;
  const uint32_t zeros = maker.Zeros(10000);
  const uint32_t data = maker.Data(std::string(16, '\xff'));
  const uint32_t common = maker.Symbol("common", SHN_COMMON, 64, 100);
  maker.Symbol("zeros", zeros, 8);
  maker.Symbol("data", data);
  maker.Relocate(data, 0, R_X86_64_64, common, 3);
  maker.Relocate(data, 8, R_X86_64_64,
                 maker.Symbol("weak", SHN_UNDEF, 0, 0, STB_WEAK));
  ASSERT_OK_AND_ASSIGN(const Pointer object,
                       LoadedObject::Load(maker.Make(), nullptr));
  const auto* const place = static_cast<const char*>(object->Find("common"));
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % 64, 0);
  EXPECT_EQ(std::count(place, place + 100, '\0'), 100);
  const char* pointers[2];
  std::memcpy(pointers, object->Find("data"), sizeof pointers);
  EXPECT_EQ(pointers[0], place + 3);
  EXPECT_EQ(pointers[1], nullptr);
  const auto* const rest = static_cast<const char*>(object->Find("zeros"));
  EXPECT_EQ(std::count(rest, rest + 9992, '\0'), 9992);
}

// Nothing of an object runs by itself, and a list of functions names none that
// are not its own.
TEST(ObjectLoader, ListsWhatWouldRunBeforeAndAfter) {
  ObjectMaker maker;
  const uint32_t code = maker.Code(kLoad);
  const uint32_t data = maker.Data(std::string("\x07\0\0\0", 4));
  const uint32_t list =
      maker.Section(".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE,
                    std::string(24, '\x7f'));
  const uint32_t value = maker.Symbol("value", data);
  const uint32_t seven = maker.Symbol("seven", code);
  maker.Relocate(code, 2, R_X86_64_PC32, value, -4);
  maker.Relocate(list, 0, R_X86_64_64, seven);
  maker.Relocate(list, 8, R_X86_64_64, value);
  ASSERT_OK_AND_ASSIGN(const Pointer object,
                       LoadedObject::Load(maker.Make(), nullptr));
  ASSERT_EQ(object->initializers().size(), 1);
  EXPECT_EQ(reinterpret_cast<void*>(object->initializers()[0]),
            object->Find("seven"));
  EXPECT_TRUE(object->finalizers().empty());
}

// No page of it can be both written and run.
TEST(ObjectLoader, KeepsCodeAndDataApart) {
  ASSERT_OK_AND_ASSIGN(const Pointer runtime,
                       LoadedObject::Load(TestRuntime(), nullptr));
  ASSERT_OK_AND_ASSIGN(const Pointer kernels,
                       LoadedObject::Load(TestKernels(), runtime));
  const auto entry = reinterpret_cast<uintptr_t>(kernels->Find("marked_argv"));
  ASSERT_NE(entry, 0);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  bool found = false;
  while (std::getline(maps, line)) {
    uint64_t begin;
    uint64_t end;
    char access[5];
    ASSERT_EQ(sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access), 3);
    EXPECT_FALSE(access[1] == 'w' && access[2] == 'x') << line;
    if (begin <= entry && entry < end) {
      found = true;
      EXPECT_EQ(std::string(access), "r-xp");
    }
  }
  EXPECT_TRUE(found);
}

TEST(ObjectLoader, AllowsNoOtherFunctionsOfTheSystem) {
  EXPECT_NE(FindSystemSymbol("memcpy"), nullptr);
  EXPECT_NE(FindSystemSymbol("sinf"), nullptr);
  EXPECT_EQ(FindSystemSymbol("system"), nullptr);
  EXPECT_EQ(FindSystemSymbol("execve"), nullptr);
  EXPECT_EQ(FindSystemSymbol(""), nullptr);
}

TEST(ObjectLoader, RefusesWhatNoKernelHas) {
  const auto refusal = [](ObjectMaker& maker) {
    const auto object = LoadedObject::Load(maker.Make(), nullptr);
    EXPECT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(object.status().message());
  };
  {
    ObjectMaker maker;
    maker.Section(".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, "x");
    EXPECT_THAT(refusal(maker), HasSubstr("thread-local"));
  }
  {
    ObjectMaker maker;
    maker.Section(".both", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR,
                  "x");
    EXPECT_THAT(refusal(maker), HasSubstr("code that can be written"));
  }
  {
    ObjectMaker maker;
    maker.Section(".odd", SHT_PROGBITS, SHF_ALLOC, "x", 3);
    EXPECT_THAT(refusal(maker), HasSubstr("is aligned to 3"));
  }
  {
    ObjectMaker maker;
    maker.Zeros(uint64_t{1} << 40);
    EXPECT_THAT(refusal(maker), HasSubstr("its sections need"));
  }
  {
    ObjectMaker maker;
    maker.Zeros(~uint64_t{0});
    EXPECT_THAT(refusal(maker), HasSubstr("its sections need"));
  }
  {
    ObjectMaker maker;
    const uint32_t data = maker.Data("1234");
    maker.Symbol("behind", data, 5);
    EXPECT_THAT(refusal(maker), HasSubstr("`behind` lies behind its section"));
  }
  for (const uint64_t offset : {uint64_t{1}, ~uint64_t{0}, ~uint64_t{3}}) {
    ObjectMaker maker;
    const uint32_t data = maker.Data("1234");
    const uint32_t symbol = maker.Symbol("s", data);
    maker.Relocate(data, offset, R_X86_64_PC32, symbol);
    EXPECT_THAT(refusal(maker), HasSubstr("a relocation lies behind"));
  }
  {
    ObjectMaker maker;
    const uint32_t data = maker.Data("12345678");
    maker.Relocate(data, 0, R_X86_64_64, 77);
    EXPECT_THAT(refusal(maker), HasSubstr("by symbol 77"));
  }
  {
    ObjectMaker maker;
    const uint32_t data = maker.Data("12345678");
    maker.Relocate(data, 0, R_X86_64_TPOFF64, maker.Symbol("s", SHN_ABS));
    EXPECT_THAT(refusal(maker), HasSubstr("is of type 18"));
  }
  {
    ObjectMaker maker;
    const uint32_t zeros = maker.Zeros(16);
    maker.Relocate(zeros, 0, R_X86_64_64, maker.Symbol("s", SHN_ABS));
    EXPECT_THAT(refusal(maker), HasSubstr("relocations are of zeros"));
  }
  {
    ObjectMaker maker;
    maker.Symbol("i", SHN_ABS, 0, 0, STB_GLOBAL, STT_GNU_IFUNC);
    EXPECT_THAT(refusal(maker), HasSubstr("`i` is thread-local or indirect"));
  }
  {
    ObjectMaker maker;
    maker.Symbol("far", 999);
    EXPECT_THAT(refusal(maker), HasSubstr("`far` is in section 999"));
  }
  {
    ObjectMaker maker;
    const uint32_t data = maker.Data("1234");
    maker.Relocate(data, 0, R_X86_64_32, maker.Symbol("s", data));
    EXPECT_THAT(refusal(maker), HasSubstr("`s` is out of reach"));
  }
}

// Files are data from a disk: whatever is in them is an object or an error.
TEST(ObjectLoader, SurvivesDamage) {
  const std::string whole = TestKernels();
  ASSERT_OK_AND_ASSIGN(const Pointer runtime,
                       LoadedObject::Load(TestRuntime(), nullptr));
  int loaded = 0;
  int refused = 0;
  const auto look = [&](const std::string& bytes) {
    const auto object = LoadedObject::Load(bytes, runtime);
    ++(object.ok() ? loaded : refused);
    if (!object.ok()) {
      EXPECT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument)
          << object.status();
    }
  };
  for (size_t size = 0; size < whole.size(); size += 1 + size / 97) {
    look(whole.substr(0, size));
  }
  EXPECT_EQ(loaded, 0) << "the table of sections stands at the end";
  // Numbers that bounds are about, in the tables above all.
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  std::mt19937_64 random(5);
  const uint64_t numbers[] = {0,
                              1,
                              7,
                              0xff,
                              0xfff1,
                              0xfff2,
                              0xffff,
                              0x7fffffff,
                              0xffffffff,
                              whole.size(),
                              uint64_t{1} << 62,
                              ~uint64_t{0},
                              ~uint64_t{7}};
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const uint64_t from = random() % 2 == 0 ? header.e_shoff : 0;
      const uint64_t at = from + random() % (bytes.size() - from - 8);
      const uint64_t number =
          random() % 4 == 0 ? random() : numbers[random() % std::size(numbers)];
      std::memcpy(&bytes[at], &number, size_t{1} << random() % 4);
    }
    look(bytes);
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 1000);
  // The tables of symbols and relocations, each entry in turn.
  loaded = 0;
  refused = 0;
  std::vector<Elf64_Shdr> headers(header.e_shnum);
  std::memcpy(headers.data(), &whole[header.e_shoff],
              headers.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : headers) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_RELA) continue;
    for (uint64_t at = 0; at + 8 <= section.sh_size; at += 4) {
      std::string bytes = whole;
      const uint64_t number = numbers[random() % std::size(numbers)];
      std::memcpy(&bytes[section.sh_offset + at], &number, 4);
      look(bytes);
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace cleave::internal_kernel
