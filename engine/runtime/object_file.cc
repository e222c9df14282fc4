#include "engine/runtime/object_file.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// Larger ones are no kernels: offsets within one mapping stay far below 2^31.
constexpr uint64_t kMaxBytes = uint64_t{1} << 29;
constexpr uint64_t kMaxAlignment = 4096;

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("no kernel object: ", parts...));
}

// Reads an object's tables. Nothing in them is aligned or believed.
class Parser {
 public:
  explicit Parser(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<ObjectFile> Parse() {
    CLEAVE_RETURN_IF_ERROR(ReadHeaders());
    CLEAVE_RETURN_IF_ERROR(ReadSections());
    CLEAVE_RETURN_IF_ERROR(ReadSymbols());
    for (const Elf64_Shdr& header : headers_) {
      if (header.sh_type == SHT_RELA) {
        CLEAVE_RETURN_IF_ERROR(ReadRelocations(header));
      }
    }
    return std::move(object_);
  }

 private:
  // `count` records of type T from `offset` on.
  template <typename T>
  absl::Status ReadTable(uint64_t offset, uint64_t size, uint64_t entry_size,
                         absl::string_view what, std::vector<T>* table) {
    if (entry_size != sizeof(T) || size % sizeof(T) != 0) {
      return Bad(what, " have entries of ", entry_size, " bytes");
    }
    CLEAVE_ASSIGN_OR_RETURN(const absl::string_view bytes,
                            Range(offset, size, what));
    table->resize(size / sizeof(T));
    if (size > 0) std::memcpy(table->data(), bytes.data(), size);
    return absl::OkStatus();
  }

  absl::StatusOr<absl::string_view> Range(uint64_t offset, uint64_t size,
                                          absl::string_view what) {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return Bad(what, " lie behind its end");
    }
    return bytes_.substr(offset, size);
  }

  absl::Status ReadHeaders() {
    Elf64_Ehdr header;
    if (bytes_.size() < sizeof(header)) return Bad("it is too short");
    if (bytes_.size() > kMaxBytes) return Bad("it is too large");
    std::memcpy(&header, bytes_.data(), sizeof(header));
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      return Bad("it does not begin as an ELF file");
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64 || header.e_type != ET_REL) {
      return Bad("it is no relocatable one for x86-64");
    }
    // The first entry has the count where it does not fit into the header.
    uint64_t count = header.e_shnum;
    if (count == 0 && header.e_shoff != 0) {
      std::vector<Elf64_Shdr> first;
      CLEAVE_RETURN_IF_ERROR(ReadTable(header.e_shoff, sizeof(Elf64_Shdr),
                                       header.e_shentsize, "sections", &first));
      count = first[0].sh_size;
    }
    if (count > bytes_.size() / sizeof(Elf64_Shdr)) {
      return Bad("it has ", count, " sections");
    }
    return ReadTable(header.e_shoff, count * sizeof(Elf64_Shdr),
                     header.e_shentsize, "sections", &headers_);
  }

  absl::Status AddSection(ObjectSection section) {
    total_ += section.size + section.alignment;
    if (section.size > kMaxBytes || total_ > kMaxBytes) {
      return Bad("its sections need ", total_, " bytes");
    }
    object_.sections.push_back(section);
    return absl::OkStatus();
  }

  absl::Status ReadSections() {
    section_of_.resize(headers_.size());
    for (size_t i = 0; i < headers_.size(); ++i) {
      const Elf64_Shdr& header = headers_[i];
      if ((header.sh_flags & SHF_ALLOC) == 0) continue;
      ObjectSection section;
      switch (header.sh_type) {
        case SHT_PROGBITS:
        case SHT_X86_64_UNWIND:
        case SHT_NOTE:
          break;
        case SHT_INIT_ARRAY:
          section.is_initializers = true;
          break;
        case SHT_FINI_ARRAY:
          section.is_finalizers = true;
          break;
        case SHT_NOBITS:
          break;
        default:
          return Bad("section ", i, " is of type ", header.sh_type);
      }
      if ((header.sh_flags & (SHF_TLS | SHF_COMPRESSED)) != 0) {
        return Bad("section ", i, " is thread-local or compressed");
      }
      section.size = header.sh_size;
      if (header.sh_type != SHT_NOBITS) {
        CLEAVE_ASSIGN_OR_RETURN(
            section.bytes, Range(header.sh_offset, header.sh_size,
                                 absl::StrCat("the bytes of section ", i)));
      }
      const uint64_t alignment = header.sh_addralign;
      section.alignment = alignment == 0 ? 1 : alignment;
      if ((section.alignment & (section.alignment - 1)) != 0 ||
          section.alignment > kMaxAlignment) {
        return Bad("section ", i, " is aligned to ", alignment);
      }
      section.writable = (header.sh_flags & SHF_WRITE) != 0;
      section.executable = (header.sh_flags & SHF_EXECINSTR) != 0;
      if (section.writable && section.executable) {
        return Bad("section ", i, " is code that can be written");
      }
      section_of_[i] = static_cast<uint32_t>(object_.sections.size());
      CLEAVE_RETURN_IF_ERROR(AddSection(section));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSymbols() {
    object_.symbols.emplace_back();
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type != SHT_SYMTAB) continue;
      if (symbol_table_.has_value()) return Bad("it has two tables of symbols");
      symbol_table_ = i;
    }
    if (!symbol_table_.has_value()) return absl::OkStatus();
    const Elf64_Shdr& header = headers_[*symbol_table_];
    std::vector<Elf64_Sym> symbols;
    CLEAVE_RETURN_IF_ERROR(ReadTable(header.sh_offset, header.sh_size,
                                     header.sh_entsize, "symbols", &symbols));
    if (header.sh_link >= headers_.size() ||
        headers_[header.sh_link].sh_type != SHT_STRTAB) {
      return Bad("its symbols have no names");
    }
    const Elf64_Shdr& strings = headers_[header.sh_link];
    CLEAVE_ASSIGN_OR_RETURN(
        const absl::string_view names,
        Range(strings.sh_offset, strings.sh_size, "the names of symbols"));
    for (size_t i = 1; i < symbols.size(); ++i) {
      CLEAVE_RETURN_IF_ERROR(AddSymbol(symbols[i], names));
    }
    return absl::OkStatus();
  }

  absl::Status AddSymbol(const Elf64_Sym& from, absl::string_view names) {
    ObjectSymbol symbol;
    const size_t number = object_.symbols.size();
    if (from.st_name >= names.size()) {
      if (from.st_name != 0) return Bad("symbol ", number, " has no name");
    } else {
      const absl::string_view rest = names.substr(from.st_name);
      const size_t end = rest.find('\0');
      if (end == absl::string_view::npos) {
        return Bad("symbol ", number, " has no name");
      }
      symbol.name = rest.substr(0, end);
    }
    const unsigned type = ELF64_ST_TYPE(from.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC) {
      return Bad("`", symbol.name, "` is thread-local or indirect");
    }
    const unsigned binding = ELF64_ST_BIND(from.st_info);
    if (binding != STB_LOCAL && binding != STB_GLOBAL && binding != STB_WEAK) {
      return Bad("`", symbol.name, "` is bound in way ", binding);
    }
    symbol.global = binding != STB_LOCAL;
    symbol.weak = binding == STB_WEAK;
    symbol.value = from.st_value;
    switch (from.st_shndx) {
      case SHN_UNDEF:
        symbol.place = ObjectSymbol::Place::kUndefined;
        break;
      case SHN_ABS:
        symbol.place = ObjectSymbol::Place::kAbsolute;
        break;
      case SHN_COMMON: {
        // Its value is its alignment.
        const uint64_t alignment = from.st_value == 0 ? 1 : from.st_value;
        if ((alignment & (alignment - 1)) != 0 || alignment > kMaxAlignment) {
          return Bad("`", symbol.name, "` is aligned to ", alignment);
        }
        ObjectSection zeros;
        zeros.size = from.st_size;
        zeros.alignment = alignment;
        zeros.writable = true;
        symbol.place = ObjectSymbol::Place::kSection;
        symbol.section = static_cast<uint32_t>(object_.sections.size());
        symbol.value = 0;
        CLEAVE_RETURN_IF_ERROR(AddSection(zeros));
        break;
      }
      default: {
        // SHN_XINDEX needs 2^16 sections.
        if (from.st_shndx >= headers_.size()) {
          return Bad("`", symbol.name, "` is in section ", from.st_shndx);
        }
        const std::optional<uint32_t> section = section_of_[from.st_shndx];
        if (!section.has_value()) {
          symbol.place = ObjectSymbol::Place::kDropped;
          break;
        }
        // One behind its end, too: a label there is legal.
        if (from.st_value > object_.sections[*section].size) {
          return Bad("`", symbol.name, "` lies behind its section");
        }
        symbol.place = ObjectSymbol::Place::kSection;
        symbol.section = *section;
      }
    }
    object_.symbols.push_back(symbol);
    return absl::OkStatus();
  }

  absl::Status ReadRelocations(const Elf64_Shdr& header) {
    if (header.sh_info >= headers_.size()) {
      return Bad("relocations are of section ", header.sh_info);
    }
    const std::optional<uint32_t> section = section_of_[header.sh_info];
    if (!section.has_value()) return absl::OkStatus();  // of debugging data
    if (!symbol_table_.has_value() || header.sh_link != *symbol_table_) {
      return Bad("relocations have no symbols");
    }
    const ObjectSection& patched = object_.sections[*section];
    if (patched.bytes.size() != patched.size) {
      return Bad("relocations are of zeros");
    }
    std::vector<Elf64_Rela> entries;
    CLEAVE_RETURN_IF_ERROR(ReadTable(header.sh_offset, header.sh_size,
                                     header.sh_entsize, "relocations",
                                     &entries));
    for (const Elf64_Rela& entry : entries) {
      ObjectRelocation relocation;
      relocation.section = *section;
      relocation.offset = entry.r_offset;
      relocation.type = ELF64_R_TYPE(entry.r_info);
      relocation.addend = entry.r_addend;
      if (relocation.type == R_X86_64_NONE) continue;
      const auto width =
          static_cast<uint64_t>(RelocationWidth(relocation.type));
      if (width == 0) return Bad("a relocation is of type ", relocation.type);
      if (patched.size < width || relocation.offset > patched.size - width) {
        return Bad("a relocation lies behind its section");
      }
      const uint64_t symbol = ELF64_R_SYM(entry.r_info);
      if (symbol >= object_.symbols.size()) {
        return Bad("a relocation is by symbol ", symbol);
      }
      relocation.symbol = static_cast<uint32_t>(symbol);
      if (object_.symbols[symbol].place == ObjectSymbol::Place::kDropped) {
        return Bad("a relocation is by what has no memory");
      }
      object_.relocations.push_back(relocation);
    }
    return absl::OkStatus();
  }

  const absl::string_view bytes_;
  std::vector<Elf64_Shdr> headers_;
  std::vector<std::optional<uint32_t>> section_of_;  // by the header's number
  std::optional<size_t> symbol_table_;
  uint64_t total_ = 0;  // bytes in memory, alignment included
  ObjectFile object_;
};

}  // namespace

absl::StatusOr<ObjectFile> ObjectFile::Parse(absl::string_view bytes) {
  return Parser(bytes).Parse();
}

int RelocationWidth(uint32_t type) {
  switch (type) {
    case R_X86_64_64:
    case R_X86_64_PC64:
      return 8;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_32:
    case R_X86_64_32S:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      return 4;
    default:
      return 0;
  }
}

}  // namespace cleave::internal_kernel
