#include "harness/run/case_codec.h"

#include <string>
#include <utility>

#include "harness/case/schema.h"
#include "harness/plugin/bytes.h"

namespace kv {
namespace {

class Encoder {
 public:
  template <class T, class... Rules>
  void field(const char*, const T& member, const Rules&...) {
    put(member);
  }
  template <class T, class... Rules>
  void optional(const char*, const T& member, const Rules&...) {
    put(member);
  }
  std::vector<std::byte> take() && { return std::move(writer_).take(); }

 private:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T value) { writer_.number<T>(value); }
  void put(RequestId id) { put(id.value); }
  void put(const std::string& text) { writer_.text(text); }
  void put(const Op& op) {
    put(static_cast<uint8_t>(op.index()));
    std::visit([this](const auto& o) { schema::fields(*this, o); }, op);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(uint64_t{items.size()});
    for (const T& item : items) put(item);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& group) { schema::fields(*this, group); }

  ByteWriter writer_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : reader_(bytes) {}
  template <class T, class... Rules>
  void field(const char*, T& member, const Rules&...) {
    get(member);
  }
  template <class T, class... Rules>
  void optional(const char*, T& member, const Rules&...) {
    get(member);
  }
  bool complete() const { return reader_.complete(); }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  void get(T& value) { value = reader_.number<T>(); }
  template <class T>
  requires std::is_enum_v<T>
  void get(T& value) { value = static_cast<T>(reader_.number<std::underlying_type_t<T>>()); }
  void get(RequestId& id) { get(id.value); }
  void get(std::string& text) {
    const auto bytes = reader_.blob();
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void get(Op& op) {
    uint8_t index = 0;
    get(index);
    emplace(op, index, std::make_index_sequence<std::variant_size_v<Op>>());
    std::visit([this](auto& o) { schema::fields(*this, o); }, op);
  }
  template <size_t... kIndex>
  static void emplace(Op& op, size_t index, std::index_sequence<kIndex...>) {
    static_cast<void>(((kIndex == index && (op.emplace<kIndex>(), true)) || ...));
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool is_there = false;
    get(is_there);
    if (is_there) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& items) {
    const uint64_t count = reader_.count(1);
    items.reserve(count);
    for (uint64_t i = 0; i < count && reader_.ok(); ++i) get(items.emplace_back());
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& group) { schema::fields(*this, group); }

  ByteReader reader_;
};

}  // namespace

std::vector<std::byte> encode_case(const Case& c) {
  Encoder encoder;
  schema::fields(encoder, c);
  return std::move(encoder).take();
}

std::optional<Case> decode_case(std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  Case c;
  schema::fields(decoder, c);
  if (!decoder.complete()) return std::nullopt;
  return c;
}

}  // namespace kv
