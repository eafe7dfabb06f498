#include "harness/dump/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "harness/case/problem.h"

namespace kv {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kHeaderBytesMax = 65536;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {"<f2", "F16"}, {"<u2", "BF16"}, {"<V2", "BF16"}, {"|V2", "BF16"}, {"<f4", "F32"},
    {"<f8", "F64"}, {"|i1", "I8"},   {"<i2", "I16"},  {"<i4", "I32"},  {"<i8", "I64"},
    {"|u1", "U8"},  {"|V1", "U8"},   {"<u4", "U32"},  {"<u8", "U64"},  {"|b1", "BOOL"},
};

/// The literal of a Python dictionary that NumPy writes as header, and nothing else of Python.
class Header {
 public:
  explicit Header(std::string_view text) : text_(text) {}

  std::string descr;
  bool fortran = false;
  std::vector<uint64_t> shape;

  bool parse() {
    if (!take('{')) return false;
    bool seen[3] = {};
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':')) return false;
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || std::exchange(seen[which], true)) return false;
      if (which == 0 ? !string(descr) : which == 1 ? !boolean() : !tuple()) return false;
      if (!take(',') && peek() != '}') return false;
    }
    return peek() == '\0' && seen[0] && seen[1] && seen[2];
  }

 private:
  char peek() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_[0];
  }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    peek();
    if (!text_.starts_with(w)) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool string(std::string& out) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, 1);
    if (end == text_.npos) return false;
    out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool boolean() {
    fortran = word("True");
    return fortran || word("False");
  }
  bool tuple() {
    if (!take('(')) return false;
    while (!take(')')) {
      uint64_t size = 0;
      peek();
      const auto [stop, status] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (status != std::errc() || shape.size() == kTensorRankMax) return false;
      text_.remove_prefix(static_cast<size_t>(stop - text_.data()));
      shape.push_back(size);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
};

struct Split {
  std::string_view header, data;
};
Result<Split> split(std::string_view bytes, std::string_view where) {
  const auto refuse = [&](std::string_view expected) {
    return bad_input(fmt::format("{}: expected {}, got {} bytes that begin with {}", where,
                                 expected, bytes.size(), in_quotes(bytes.substr(0, 8))));
  };
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) return refuse("an array of NumPy (.npy)");
  const auto major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) return refuse("version 1, 2 or 3 of .npy");
  const size_t field = major == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, field);
  bytes.remove_prefix(8 + field);
  if (length > kHeaderBytesMax || length > bytes.size()) return refuse("a header that fits");
  return Split{bytes.substr(0, length), bytes.substr(length)};
}

}  // namespace

Result<void> add_npy(TensorFile& file, const std::string& name, std::string_view bytes,
                     std::string_view where) {
  const auto wrong = [&](std::string_view expected, std::string_view got) {
    return bad_input(fmt::format("{}: expected {}, got {}", where, expected, got));
  };
  KV_ASSIGN_OR_RETURN(const Split parts, split(bytes, where));
  Header header(parts.header);
  if (!header.parse()) {
    return wrong("a header of descr, fortran_order and shape", in_quotes(parts.header));
  }
  StoredTensor tensor{.name = name, .shape = header.shape, .first = file.data.size()};
  for (const auto& [descr, type] : kTypes)
    if (descr == header.descr) tensor.type = type;
  if (tensor.type.empty()) {
    return wrong("numbers of a little-endian type of at most 8 bytes", in_quotes(header.descr));
  }
  if (header.fortran && header.shape.size() > 1) return wrong("C order", "Fortran order");
  const auto count = element_count(header.shape);
  if (!count || *count * stored_type_bytes(tensor.type) != parts.data.size()) {
    return wrong(fmt::format("the bytes of {} of shape {}", tensor.type, tensor.shape_text()),
                 fmt::format("{} bytes", parts.data.size()));
  }
  tensor.bytes = parts.data.size();
  file.data += parts.data;
  file.tensors.push_back(std::move(tensor));
  return {};
}

}  // namespace kv
