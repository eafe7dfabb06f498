#include "harness/simt/ptx/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace kv::simt::ptx {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr size_t kFatbinHeaderBytes = 16;
constexpr size_t kEntryHeaderBytes = 0x40;
constexpr uint64_t kFlagDebug = 0x2, kFlagLz4 = 0x2000, kFlagZstd = 0x8000;

static_assert(FatbinLimits::kRawBytes <= LZ4_MAX_INPUT_SIZE);

template <class T>
T read(std::span<const uint8_t> bytes, size_t offset) {
  T value;
  KV_CHECK(offset + sizeof value <= bytes.size(), "fat binary field outside of its header");
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string hex(uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

Error bad_fatbin(size_t offset, std::string_view expected, const std::string& got) {
  return bad_input("fat binary at byte " + hex(offset) + ": expected " + std::string(expected) +
                   ", got " + got);
}

/// A string inside the entry's header, or nothing: names are for reports only.
std::string_view header_string(std::span<const uint8_t> header, uint32_t offset, uint32_t length) {
  if (offset > header.size() || length > header.size() - offset) return {};
  return {reinterpret_cast<const char*>(header.data()) + offset, length};
}

/// One entry's header, little endian:
///   0x00 u16 kind (1 PTX, 2 ELF), u16 version, u32 header bytes, u64 stored bytes (padded)
///   0x10 u32 exact stored bytes when compressed, u32 offset of {u32, u32} naming the options
///   0x18 u16 ISA minor, u16 ISA major, u32 architecture, u32 name offset, u32 name length
///   0x28 u64 flags, u64 zero, u64 raw bytes when compressed
Result<FatbinEntry> parse_entry(std::span<const uint8_t> rest, size_t at, size_t* bytes) {
  if (rest.size() < kEntryHeaderBytes) {
    return bad_fatbin(at, "an entry header of 64 bytes", std::to_string(rest.size()));
  }
  const auto header_bytes = read<uint32_t>(rest, 4);
  const auto stored_bytes = read<uint64_t>(rest, 8);
  if (header_bytes < kEntryHeaderBytes || header_bytes > rest.size()) {
    return bad_fatbin(at + 4, "an entry header of 64 to " + std::to_string(rest.size()) + " bytes",
                      std::to_string(header_bytes));
  }
  if (stored_bytes > rest.size() - header_bytes) {
    return bad_fatbin(
        at + 8, "a payload of at most " + std::to_string(rest.size() - header_bytes) + " bytes",
        std::to_string(stored_bytes));
  }
  const auto header = rest.first(header_bytes);
  const auto kind = read<uint16_t>(header, 0);
  const auto exact_bytes = read<uint32_t>(header, 0x10);
  const auto flags = read<uint64_t>(header, 0x28);
  FatbinEntry entry;
  if (kind == 1) entry.kind = FatbinEntry::Kind::kPtx;
  if (kind == 2) entry.kind = FatbinEntry::Kind::kCubin;
  entry.isa_minor = read<uint16_t>(header, 0x18);
  entry.isa_major = read<uint16_t>(header, 0x1a);
  entry.sm = read<uint32_t>(header, 0x1c);
  entry.has_debug_info = (flags & kFlagDebug) != 0;
  entry.source_name =
      header_string(header, read<uint32_t>(header, 0x20), read<uint32_t>(header, 0x24));
  const auto options = read<uint32_t>(header, 0x14);
  if (options != 0 && options <= header_bytes - 8 && header_bytes >= 8) {
    entry.options =
        header_string(header, read<uint32_t>(header, options), read<uint32_t>(header, options + 4));
  }
  entry.payload = rest.subspan(header_bytes, stored_bytes);
  entry.raw_bytes = stored_bytes;
  if ((flags & (kFlagLz4 | kFlagZstd)) != 0) {
    entry.compression =
        (flags & kFlagZstd) ? FatbinEntry::Compression::kZstd : FatbinEntry::Compression::kLz4;
    entry.raw_bytes = read<uint64_t>(header, 0x38);
    if (exact_bytes == 0 || exact_bytes > stored_bytes) {
      return bad_fatbin(at + 0x10, "compressed bytes between 1 and " + std::to_string(stored_bytes),
                        std::to_string(exact_bytes));
    }
    entry.payload = entry.payload.first(exact_bytes);
  }
  *bytes = header_bytes + stored_bytes;
  return entry;
}

Result<std::string> decompress_lz4(const FatbinEntry& entry) {
  std::string text(entry.raw_bytes, '\0');
  const int produced =
      LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()), text.data(),
                          int(entry.payload.size()), int(text.size()));
  if (produced < 0 || size_t(produced) != text.size()) {
    return bad_input("fat binary: the LZ4 block of the sm_" + std::to_string(entry.sm) +
                     " entry is damaged: expected " + std::to_string(text.size()) + " bytes, got " +
                     std::to_string(produced));
  }
  return text;
}

Result<std::string> decompress_zstd(const FatbinEntry& entry) {
  std::string text(entry.raw_bytes, '\0');
  const size_t produced =
      ZSTD_decompress(text.data(), text.size(), entry.payload.data(), entry.payload.size());
  if (ZSTD_isError(produced) || produced != text.size()) {
    return bad_input(
        "fat binary: the zstd frame of the sm_" + std::to_string(entry.sm) +
        " entry is damaged: expected " + std::to_string(text.size()) + " bytes, got " +
        (ZSTD_isError(produced) ? ZSTD_getErrorName(produced) : std::to_string(produced)));
  }
  return text;
}

std::string list_entries(std::span<const FatbinEntry> entries) {
  std::string list;
  for (const FatbinEntry& entry : entries) {
    const char* kind = entry.kind == FatbinEntry::Kind::kPtx     ? "PTX "
                       : entry.kind == FatbinEntry::Kind::kCubin ? "cubin "
                                                                 : "other ";
    list += (list.empty() ? "" : ", ") + std::string(kind) + "sm_" + std::to_string(entry.sm);
  }
  return list.empty() ? "nothing" : list;
}

}  // namespace

Result<std::vector<FatbinEntry>> read_fatbin(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFatbinHeaderBytes) {
    return bad_fatbin(0, "a header of 16 bytes", std::to_string(bytes.size()));
  }
  const auto magic = read<uint32_t>(bytes, 0);
  const auto version = read<uint16_t>(bytes, 4);
  const auto header_bytes = read<uint16_t>(bytes, 6);
  const auto entry_bytes = read<uint64_t>(bytes, 8);
  if (magic != kFatbinMagic) return bad_fatbin(0, "the magic 0xba55ed50", hex(magic));
  if (version != 1) return bad_fatbin(4, "version 1", std::to_string(version));
  if (header_bytes < kFatbinHeaderBytes || header_bytes > bytes.size() ||
      entry_bytes > bytes.size() - header_bytes) {
    return bad_fatbin(6, "header and entries within " + std::to_string(bytes.size()) + " bytes",
                      std::to_string(header_bytes) + " and " + std::to_string(entry_bytes));
  }
  std::vector<FatbinEntry> entries;
  const size_t end = header_bytes + entry_bytes;
  for (size_t at = header_bytes; at < end;) {
    if (entries.size() == FatbinLimits::kEntries) {
      return bad_fatbin(at, "at most 256 entries", "more");
    }
    size_t used = 0;
    KV_ASSIGN_OR_RETURN(FatbinEntry entry, parse_entry(bytes.subspan(at, end - at), at, &used));
    entries.push_back(entry);
    at += used;
  }
  return entries;
}

Result<std::vector<FatbinEntry>> read_fatbin_wrapper(const void* wrapper) {
  if (!wrapper) return bad_input("fat binary: the wrapper is a null pointer");
  const std::span fields(static_cast<const uint8_t*>(wrapper), 24);
  const auto magic = read<uint32_t>(fields, 0);
  const auto version = read<uint32_t>(fields, 4);
  if (magic != kWrapperMagic) {
    return bad_input("fat binary wrapper: expected the magic 0x466243b1, got " + hex(magic));
  }
  if (version == 2) {
    return unsupported(
        "fat binary wrapper: relocatable device code (-rdc=true) is not supported; "
        "compile each .cu file with -rdc=false");
  }
  if (version != 1) {
    return bad_input("fat binary wrapper: expected version 1, got " + std::to_string(version));
  }
  const auto* fatbin = reinterpret_cast<const uint8_t*>(read<uint64_t>(fields, 8));
  if (!fatbin) return bad_input("fat binary wrapper: its data pointer is null");
  const std::span header(fatbin, kFatbinHeaderBytes);
  const auto entry_bytes = read<uint64_t>(header, 8);
  if (read<uint32_t>(header, 0) != kFatbinMagic) return read_fatbin(header);  // says what is wrong
  if (entry_bytes > FatbinLimits::kContainerBytes) {
    return bad_fatbin(8, "at most 4 GiB of entries", std::to_string(entry_bytes));
  }
  return read_fatbin({fatbin, read<uint16_t>(header, 6) + size_t(entry_bytes)});
}

Result<std::string> ptx_text(const FatbinEntry& entry) {
  KV_CHECK(entry.kind == FatbinEntry::Kind::kPtx, "text of an entry that is not PTX");
  // No PTX is that repetitive; the bound keeps a lying header from costing memory.
  const uint64_t stored = entry.payload.size();
  const uint64_t limit = std::min(FatbinLimits::kRawBytes, (stored + 1) * FatbinLimits::kRatio);
  if (entry.raw_bytes > limit || stored > FatbinLimits::kRawBytes) {
    return bad_input("fat binary: expected PTX of at most " + std::to_string(limit) +
                     " bytes from " + std::to_string(stored) + " stored, got " +
                     std::to_string(entry.raw_bytes));
  }
  Result<std::string> text = std::string();
  if (entry.compression == FatbinEntry::Compression::kNone) {
    text = std::string(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
  } else if (entry.compression == FatbinEntry::Compression::kLz4) {
    text = decompress_lz4(entry);
  } else {
    text = decompress_zstd(entry);
  }
  if (text.ok()) text->erase(text->find_last_not_of('\0') + 1);
  return text;
}

Result<std::string> select_ptx(std::span<const FatbinEntry> entries, uint32_t model_sm) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : entries) {
    const bool fits = entry.kind == FatbinEntry::Kind::kPtx && entry.sm <= model_sm;
    if (fits && (!best || entry.sm > best->sm)) best = &entry;
  }
  if (best) return ptx_text(*best);
  const std::string arch = std::to_string(model_sm);
  return unsupported("the fat binary holds no PTX that sm_" + arch +
                     " can run, only: " + list_entries(entries) +
                     ". Recompile with -gencode arch=compute_80,code=compute_80");
}

}  // namespace kv::simt::ptx
