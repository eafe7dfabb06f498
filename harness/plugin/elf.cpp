#include "harness/plugin/elf.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "harness/plugin/text.h"

namespace kv {
namespace {

constexpr uint64_t kTableBytesMax = uint64_t{64} << 20;  // headers, dynamic and string tables

/// A file whose reads never leave it.
class File {
 public:
  explicit File(const std::string& path) : stream_(path, std::ios::binary) {
    stream_.seekg(0, std::ios::end);
    if (stream_) bytes_ = static_cast<uint64_t>(stream_.tellg());
  }
  bool is_open() const { return stream_.is_open() && stream_.good(); }
  uint64_t bytes() const { return bytes_; }

  /// `count` records at `offset`, or nothing when they do not lie in the file.
  template <class Record>
  std::optional<std::vector<Record>> read(uint64_t offset, uint64_t count) {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(Record)) return std::nullopt;
    if (count > kTableBytesMax / sizeof(Record)) return std::nullopt;
    std::vector<Record> records(count);
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(records.data()),
                 static_cast<std::streamsize>(count * sizeof(Record)));
    if (!stream_) return std::nullopt;
    return records;
  }

 private:
  std::ifstream stream_;
  uint64_t bytes_ = 0;
};

constexpr ptrdiff_t kNameMax = 256;  // a table without ends must not cost its length each time

std::string string_at(const std::vector<char>& table, uint64_t offset) {
  if (offset >= table.size()) return "";
  const auto begin = table.begin() + static_cast<ptrdiff_t>(offset);
  const auto cut = begin + std::min<ptrdiff_t>(kNameMax, table.end() - begin);
  return printable(std::string(begin, std::find(begin, cut, '\0')), kNameMax);
}

class Inspector {
 public:
  explicit Inspector(const std::string& path) : path_(path), file_(path) {}

  Result<ElfFacts> inspect() {
    if (!file_.is_open()) return bad_input("cannot read '" + path_ + "': " + std::strerror(errno));
    KV_RETURN_IF_ERROR(read_header());
    KV_RETURN_IF_ERROR(read_segments());
    KV_RETURN_IF_ERROR(read_dynamic());
    read_sections();
    return facts_;
  }

 private:
  Error wrong(const std::string& what) const {
    return bad_input("'" + path_ + "' is not a plugin: " + what);
  }
  Error truncated(const std::string& what, uint64_t end) const {
    return wrong("the file is truncated: its " + what + " ends at byte " + std::to_string(end) +
                 ", the file has " + std::to_string(file_.bytes()) + " bytes");
  }

  Result<void> read_header() {
    const auto header = file_.read<Elf64_Ehdr>(0, 1);
    if (!header)
      return wrong("expected a shared object, got " + std::to_string(file_.bytes()) +
                   " bytes, too few for an ELF header");
    header_ = header->front();
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
      return wrong("expected a shared object, got a file that is not ELF");
    const bool ours = header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_machine == EM_X86_64 &&
                      header_.e_ident[EI_DATA] == ELFDATA2LSB;
    if (!ours)
      return wrong("expected ELF64 for x86-64, got machine " + std::to_string(header_.e_machine));
    if (header_.e_type != ET_DYN)
      return wrong("expected a shared object (ET_DYN), got ELF type " +
                   std::to_string(header_.e_type) + "; link it with -shared");
    return {};
  }

  Result<void> read_segments() {
    const uint64_t end = header_.e_phoff + uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr);
    const auto segments = file_.read<Elf64_Phdr>(header_.e_phoff, header_.e_phnum);
    if (!segments) return truncated("program header table", end);
    for (const Elf64_Phdr& s : *segments) {
      const bool inside = s.p_offset <= file_.bytes() && s.p_filesz <= file_.bytes() - s.p_offset;
      if (!inside) return truncated("segment", s.p_offset + s.p_filesz);
      if (s.p_type == PT_DYNAMIC) dynamic_ = s;
      if (s.p_type == PT_LOAD) loads_.push_back(s);
    }
    if (!dynamic_) return wrong("it has no dynamic section");
    return {};
  }

  std::optional<uint64_t> file_offset(uint64_t address) const {
    for (const Elf64_Phdr& s : loads_)
      if (address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return s.p_offset + (address - s.p_vaddr);
    return std::nullopt;
  }

  Result<void> read_dynamic() {
    const auto entries =
        file_.read<Elf64_Dyn>(dynamic_->p_offset, dynamic_->p_filesz / sizeof(Elf64_Dyn));
    if (!entries) return wrong("its dynamic section cannot be read");
    uint64_t table_address = 0, table_bytes = 0;
    for (const Elf64_Dyn& e : *entries) {
      if (e.d_tag == DT_STRTAB) table_address = e.d_un.d_ptr;
      if (e.d_tag == DT_STRSZ) table_bytes = e.d_un.d_val;
    }
    const auto offset = file_offset(table_address);
    const auto strings = offset ? file_.read<char>(*offset, table_bytes) : std::nullopt;
    if (!strings) return wrong("its dynamic string table lies outside the file");
    for (const Elf64_Dyn& e : *entries) {
      if (e.d_tag == DT_NULL) break;
      if (e.d_tag == DT_NEEDED) facts_.needed.push_back(string_at(*strings, e.d_un.d_val));
      if (e.d_tag == DT_SONAME) facts_.soname = string_at(*strings, e.d_un.d_val);
    }
    return {};
  }

  /// Sections may be stripped or damaged: then nothing is known of device code.
  void read_sections() {
    const auto sections = file_.read<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
    if (!sections || header_.e_shstrndx >= sections->size()) return;
    const Elf64_Shdr& names_section = (*sections)[header_.e_shstrndx];
    const auto names = file_.read<char>(names_section.sh_offset, names_section.sh_size);
    if (!names) return;
    facts_.device_code = std::any_of(sections->begin(), sections->end(), [&](const auto& s) {
      return string_at(*names, s.sh_name) == ".nv_fatbin";
    });
  }

  std::string path_;
  File file_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Phdr> loads_;
  std::optional<Elf64_Phdr> dynamic_;
  ElfFacts facts_;
};

}  // namespace

Result<ElfFacts> inspect_elf(const std::string& path) {
  // Before it is opened: opening a pipe waits for somebody to write.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return bad_input("cannot read '" + path + "': it is " +
                     (std::filesystem::is_directory(status) ? "a folder" : "no regular file") +
                     ", expected a shared object");
  }
  return Inspector(path).inspect();
}

}  // namespace kv
