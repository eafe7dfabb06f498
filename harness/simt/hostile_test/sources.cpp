#include "harness/simt/hostile_test/sources.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/core/check.h"
#include "harness/simt/ptx/fatbin.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt::hostile {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr size_t kHeaderBytes = 16;
constexpr std::string_view kKernel = ".entry ";
constexpr std::string_view kEnd = "\n}\n";

template <class T>
T field(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Where the line of the next kernel begins.
size_t next_kernel(const std::string& text, size_t from) {
  const size_t at = text.find(kKernel, from);
  return at == text.npos ? at : text.rfind('\n', at) + 1;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  KV_CHECK(file.good(), "cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Bytes> fatbins_of(const std::string& path) {
  const std::string text = read_file(path);
  const Bytes bytes(text.begin(), text.end());
  std::vector<Bytes> found;
  for (size_t at = 0; at + kHeaderBytes <= bytes.size(); at += 8) {
    if (field<uint32_t>(bytes, at) != kMagic) continue;
    const size_t size = field<uint16_t>(bytes, at + 6) + field<uint64_t>(bytes, at + 8);
    if (size > bytes.size() - at) continue;
    found.emplace_back(bytes.begin() + long(at), bytes.begin() + long(at + size));
  }
  return found;
}

std::vector<std::string> texts_of(const Bytes& fatbin) {
  std::vector<std::string> texts;
  const auto entries = ptx::read_fatbin(fatbin);
  if (!entries.ok()) return texts;
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind != ptx::FatbinEntry::Kind::kPtx) continue;
    if (auto text = ptx::ptx_text(entry); text.ok()) texts.push_back(std::move(text).value());
  }
  return texts;
}

std::vector<std::string> kernels_of(const std::string& text) {
  std::vector<std::string> kernels;
  const size_t first = next_kernel(text, 0), last = text.rfind(kEnd);
  if (first == text.npos || last == text.npos) return kernels;
  const std::string head = text.substr(0, first), tail = text.substr(last + kEnd.size());
  for (size_t at = first; at != text.npos;) {
    const size_t end = text.find(kEnd, at);
    if (end != text.npos) {
      std::string kernel = head + text.substr(at, end + kEnd.size() - at) + tail;
      if (ptx::parse_module(kernel).ok()) kernels.push_back(std::move(kernel));
    }
    at = end == text.npos ? end : next_kernel(text, end);
  }
  return kernels;
}

}  // namespace kv::simt::hostile
