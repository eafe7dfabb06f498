#include "harness/run/wire.h"

#include <algorithm>

#include "harness/plugin/bytes.h"

namespace kv {
namespace {

// ---------------------------------------------------------------- one list of fields for each type
// `fields(io, object)` names every field once; Out writes them, In reads them, in the same order.

class Out {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void number(const Number& value) { writer.number<Number>(value); }
  template <class Enum>
  void enumerator(const Enum& value, Enum) {
    writer.number<Enum>(value);
  }
  void text(const std::string& value, size_t) { writer.text(value); }
  void blob(const Bytes& value) { writer.blob(value); }
  void blob(const SharedBytes& value) { writer.blob(value.span()); }
  void blob(const std::vector<float>& value) { writer.blob(std::as_bytes(std::span(value))); }
  template <class T, class Each>
  void list(const std::vector<T>& items, uint64_t, Each each) {
    writer.number<uint64_t>(items.size());
    for (const T& item : items) each(*this, item);
  }
  ByteWriter writer;
};

class In {
 public:
  explicit In(ByteSpan payload) : reader(payload) {}
  /// Large parts stay in the payload.
  explicit In(SharedBytes::Whole payload) : reader(*payload), payload_(std::move(payload)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void number(Number& value) { value = reader.number<Number>(); }
  template <class Enum>
  void enumerator(Enum& value, Enum last) {
    value = reader.enumerator<Enum>(last);
  }
  void text(std::string& value, size_t bytes_max) { value = reader.text(bytes_max); }
  void blob(Bytes& value) {
    const ByteSpan bytes = reader.blob();
    value.assign(bytes.begin(), bytes.end());
  }
  void blob(SharedBytes& value) {
    const ByteSpan bytes = reader.blob();
    if (payload_) {
      value = SharedBytes::part_of(payload_, bytes);
    } else {
      value = Bytes(bytes.begin(), bytes.end());
    }
  }
  void blob(std::vector<float>& value) {
    const ByteSpan bytes = reader.blob();
    value.resize(bytes.size() / sizeof(float));
    if (!value.empty()) std::memcpy(value.data(), bytes.data(), value.size() * sizeof(float));
  }
  template <class T, class Each>
  void list(std::vector<T>& items, uint64_t item_bytes_min, Each each) {
    const uint64_t count = reader.count(item_bytes_min);
    items.reserve(std::min<uint64_t>(count, 64));
    for (uint64_t i = 0; i < count && reader.ok(); ++i) each(*this, items.emplace_back());
  }
  ByteReader reader;

 private:
  SharedBytes::Whole payload_;
};

constexpr size_t kNameMax = 300, kMessageMax = 2000, kOutputMax = 8192;

template <class S, class T>
concept Of = std::is_same_v<std::remove_const_t<S>, T>;

void fields(auto& io, Of<PluginFacts> auto& facts) {
  io.text(facts.name, kNameMax);
  io.text(facts.version, kNameMax);
  io.number(facts.lse_base);
  io.number(facts.lse_layout);
  io.number(facts.empty_row_lse);
  io.number(facts.pad_rows);
  io.number(facts.promises);
  io.list(facts.variants, 8, [](auto& each, auto& name) { each.text(name, kNameMax); });
}

void fields(auto& io, Of<DeviceFinding> auto& f) {
  io.number(f.kind);
  io.number(f.launch);
  for (auto* name : {&f.kernel, &f.instruction, &f.source_file, &f.inlined_at_file})
    io.text(*name, kNameMax);
  io.text(f.message, kMessageMax);
  for (auto* line : {&f.ptx_line, &f.source_line, &f.inlined_at_line}) io.number(*line);
  for (auto& index : f.block) io.number(index);
  for (auto& index : f.thread) io.number(index);
  for (auto* n : {&f.address, &f.allocation_base, &f.allocation_bytes, &f.allocation_number})
    io.number(*n);
  io.number(f.access_bytes);
  io.number(f.space);
  io.number(f.repeats);
  io.number(f.not_kept);
}

void fields(auto& io, Of<Dispatch> auto& row) {
  io.enumerator(row.type, DType::kI8);
  io.enumerator(row.cache, DType::kI8);
  io.text(row.batch, kNameMax);
  io.text(row.chosen, kNameMax);
  io.list(row.forceable, 8, [](auto& each, auto& name) { each.text(name, kNameMax); });
}

void fields(auto& io, Of<DeclaredProfile> auto& p) {
  for (auto* n : {&p.tile_slots, &p.order, &p.accumulate, &p.row_sum_of_rounded,
                  &p.maximum_is_exact, &p.splits, &p.probability_code, &p.probability_bits})
    io.number(*n);
}

void fields(auto& io, Of<LayerResult> auto& layer) {
  io.number(layer.layer);
  io.blob(layer.output);
  io.blob(layer.lse);
}

void fields(auto& io, Of<CascadeResult> auto& cascade) {
  io.number(cascade.layer);
  io.list(cascade.parts, 20, [](auto& each, auto& part) { fields(each, part); });
  fields(io, cascade.merged);
}

void fields(auto& io, Of<PageImage> auto& image) {
  io.number(image.layer);
  io.number(image.value);
  io.number(image.page.value);
  io.blob(image.bytes);
}

void fields(auto& io, Of<Trespass> auto& t) {
  io.text(t.tensor, kNameMax);
  io.number(t.offset_bytes);
  io.number(t.bytes_changed);
  io.number(t.want);
  io.number(t.got);
}

void fields(auto& io, Of<RepeatDifference> auto& d) {
  io.number(d.layer);
  io.number(d.repeat);
  io.number(d.lse);
  io.number(d.element);
  io.number(d.elements_changed);
  io.number(d.want_bits);
  io.number(d.got_bits);
}

constexpr auto kEach = [](auto& io, auto& item) { fields(io, item); };

void fields(auto& io, Of<OpObservation> auto& o) {
  io.number(o.op_index);
  io.enumerator(o.status, OpStatus::kNotRun);
  io.text(o.message, kMessageMax);
  io.text(o.variant, kNameMax);
  fields(io, o.profile);
  // The smallest encodings: a list that claims more items than could follow is refused.
  io.list(o.layers, 20, kEach);
  io.list(o.cascades, 32, kEach);
  io.list(o.pages, 17, kEach);
  io.list(o.trespasses, 26, kEach);
  io.list(o.repeat_differences, 33, kEach);
  io.list(o.findings, 100, kEach);
}

void fields(auto& io, Of<RunEnd> auto& end) {
  io.enumerator(end.outcome, RunOutcome::kEnvironment);
  io.text(end.message, kMessageMax);
  io.number(end.op_index);
  io.number(end.warp_instructions);
  io.list(end.findings, 100, kEach);
  io.text(end.output, kOutputMax);
}

void fields(auto& io, Of<RunRequest> auto& request) {
  io.number(request.number);
  io.text(request.case_path, 4096);
  io.blob(request.case_bytes);
}

template <class T>
std::optional<T> decode(ByteSpan payload) {
  In in(payload);
  T value;
  fields(in, value);
  if (!in.reader.complete()) return std::nullopt;
  return value;
}

/// About as many bytes as a message will have.
size_t size_of(const RunEnd&) { return 256; }
size_t size_of(const OpObservation& o) {
  size_t bytes = 512;
  for (const LayerResult& layer : o.layers)
    bytes += layer.output.size() + layer.lse.size() * sizeof(float) + 64;
  for (const PageImage& image : o.pages) bytes += image.bytes.size() + 64;
  return bytes;
}

template <class T>
Bytes encode_numbered(uint64_t number, const T& value) {
  Out out;
  out.writer.reserve(size_of(value));
  out.number(number);
  fields(out, value);
  return std::move(out.writer).take();
}

template <class T, class Payload>
std::optional<Numbered> decode_numbered(Payload payload) {
  In in(std::move(payload));
  Numbered numbered;
  in.number(numbered.number);
  fields(in, numbered.what.emplace<T>());
  if (!in.reader.complete()) return std::nullopt;
  return numbered;
}

/// Hello with its optional error laid flat.
struct FlatHello {
  uint8_t failed = 0;
  ErrorKind kind = ErrorKind::kBadInput;
  std::string message;
  uint64_t offered = 0;
  Hello hello;
};

void fields(auto& io, Of<FlatHello> auto& flat) {
  io.number(flat.failed);
  io.enumerator(flat.kind, ErrorKind::kTimeLimit);
  io.text(flat.message, kMessageMax);
  fields(io, flat.hello.plugin);
  io.number(flat.hello.kernel_level);
  io.number(flat.hello.engine_level);
  io.number(flat.offered);
  io.list(flat.hello.dispatch, 26, kEach);
  io.text(flat.hello.runtime_path, 4096);
}

}  // namespace

Bytes encode_hello(const Hello& hello) {
  FlatHello flat;
  flat.hello = hello;
  flat.failed = hello.error.has_value();
  flat.offered = hello.offered.bits();
  if (hello.error) {
    flat.kind = hello.error->kind;
    flat.message = hello.error->message;
  }
  Out out;
  fields(out, flat);
  return std::move(out.writer).take();
}

std::optional<Hello> decode_hello(ByteSpan payload) {
  auto flat = decode<FlatHello>(payload);
  if (!flat) return std::nullopt;
  flat->hello.offered = OfferSet(flat->offered);
  if (flat->failed != 0) flat->hello.error = Error{flat->kind, flat->message};
  return std::move(flat->hello);
}

Bytes encode_request(const RunRequest& request) {
  Out out;
  fields(out, request);
  return std::move(out.writer).take();
}
std::optional<RunRequest> decode_request(ByteSpan payload) { return decode<RunRequest>(payload); }

Bytes encode_operation(uint64_t number, const OpObservation& observation) {
  return encode_numbered(number, observation);
}
Bytes encode_end(uint64_t number, const RunEnd& end) { return encode_numbered(number, end); }
std::optional<Numbered> decode_operation(ByteSpan payload) {
  return decode_numbered<OpObservation>(payload);
}
std::optional<Numbered> decode_operation_in(SharedBytes::Whole payload) {
  return decode_numbered<OpObservation>(std::move(payload));
}
std::optional<Numbered> decode_end(ByteSpan payload) { return decode_numbered<RunEnd>(payload); }

}  // namespace kv
