#include "harness/history/engine_wire.h"

#include "harness/plugin/bytes.h"

namespace kv {
namespace {

constexpr size_t kTextMax = 4096;
constexpr size_t kCaseTextMax = 32u << 20;

template <class T>
constexpr bool kIsVector = false;
template <class T>
constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

// ---------------------------------------------------------------- one list of fields for each type

template <class T>
concept Plain = std::is_arithmetic_v<T>;

template <class S, class T>
concept Of = std::is_same_v<std::remove_const_t<S>, T>;

template <Of<RequestId> S>
void fields(auto& io, S& x) {
  io(x.value);
}
template <Of<call::Admit> S>
void fields(auto& io, S& x) {
  io(x.request), io(x.owner), io(x.side_input), io(x.tokens), io(x.histories), io(x.previous);
  io(x.slots_max), io(x.position_offset);
}
template <Of<call::StepRow> S>
void fields(auto& io, S& x) {
  io(x.request), io(x.handle), io(x.length), io(x.append), io(x.queries), io(x.speculative);
  io.enumerator(x.dtype, DType::kI8);
  io(x.tokens), io(x.histories), io(x.previous), io(x.tree_parents);
  io(x.cancel_before_layer);
}
template <Of<call::Step> S>
void fields(auto& io, S& x) {
  io(x.rows), io(x.draft), io(x.layout), io(x.wants_outputs);
}
template <Of<call::Complete> S>
void fields(auto& io, S& x) {
  io(x.step);
}
template <Of<call::Fork> S>
void fields(auto& io, S& x) {
  io(x.parent), io(x.child);
}
template <Of<call::Reorder> S>
void fields(auto& io, S& x) {
  io(x.beams), io(x.sources);
}
template <Of<call::Truncate> S>
void fields(auto& io, S& x) {
  io(x.request), io(x.length);
}
template <Of<call::Shift> S>
void fields(auto& io, S& x) {
  io(x.request), io(x.begin), io(x.end);
}
template <class S>
requires Of<S, call::Cancel> || Of<S, call::Finish> || Of<S, call::Resume> || Of<S, call::Save>
void fields(auto& io, S& x) { io(x.request); }
template <Of<call::Preempt> S>
void fields(auto& io, S& x) {
  io(x.request), io(x.swap);
}
template <Of<call::Evict> S>
void fields(auto& io, S& x) {
  io(x.pages);
}
template <Of<call::Defrag> S>
void fields(auto&, S&) {}
template <Of<call::Restore> S>
void fields(auto& io, S& x) {
  io(x.admission), io(x.bytes);
}
template <Of<call::FailAllocation> S>
void fields(auto& io, S& x) {
  io(x.nth);
}

template <Of<RequestState> S>
void fields(auto& io, S& x) {
  io(x.request), io.enumerator(x.life, Life::kSwapped), io(x.batch_slot), io(x.owner);
  io(x.handle), io(x.side_input), io(x.length), io(x.position_offset), io(x.tables);
}
template <Of<PrefixState> S>
void fields(auto& io, S& x) {
  io(x.parent), io(x.side_input), io(x.position_offset), io(x.tokens), io(x.pages);
}
template <Of<SlotsCopied> S>
void fields(auto& io, S& x) {
  io(x.group), io(x.from_page), io(x.from_slot), io(x.to_page), io(x.to_slot), io(x.slots);
}
template <Of<EngineCounters> S>
void fields(auto& io, S& x) {
  io(x.hit_pages), io(x.published_pages), io(x.evicted_pages), io(x.expired_pages);
  io(x.copied_slots), io(x.swapped_out_pages), io(x.swapped_in_pages), io(x.fenced_pages);
}
template <Of<EngineState> S>
void fields(auto& io, S& x) {
  io(x.page_count), io(x.group_count), io(x.page_slots), io(x.host_page_count);
  io(x.references), io(x.free), io(x.fenced), io(x.cached), io(x.host_free);
  io(x.requests), io(x.prefixes), io(x.in_flight), io(x.copies), io(x.counters);
}
template <Of<Answer> S>
void fields(auto& io, S& x) {
  io.enumerator(x.status, CallStatus::kExhausted), io.text(x.message, kTextMax);
  io(x.handle), io(x.length), io(x.draft_length), io(x.step), io(x.evicted), io(x.saved);
}
template <Of<SlotPlace> S>
void fields(auto& io, S& x) {
  io(x.by_page), io(x.holder), io(x.slot), io(x.layer);
}
template <Of<SlotBytes> S>
void fields(auto& io, S& x) {
  io.enumerator(x.status, CallStatus::kExhausted), io(x.key), io(x.value);
}
template <Of<Error> S>
void fields(auto& io, S& x) {
  io.enumerator(x.kind, ErrorKind::kTimeLimit), io.text(x.message, kTextMax);
}
template <Of<request::Create> S>
void fields(auto& io, S& x) {
  io.raw_text(x.case_text, kCaseTextMax);
}
template <Of<request::Perform> S>
void fields(auto& io, S& x) {
  io.variant(x.call);
}
template <Of<request::Read> S>
void fields(auto& io, S& x) {
  io.enumerator(x.cache, CacheKind::kDraft), io(x.places);
}
template <Of<request::TakeOutputs> S>
void fields(auto& io, S& x) {
  io(x.step);
}
template <Of<StepOutputs> S>
void fields(auto& io, S& x) {
  io(x.outputs), io(x.lses);
}
template <Of<EngineReply> S>
void fields(auto& io, S& x) {
  io(x.error), io(x.answer), io(x.target), io(x.draft), io(x.slots), io(x.outputs);
  io.texts(x.device_findings, kTextMax);
}

// ---------------------------------------------------------------- out and in

class Out {
 public:
  template <class T>
  void operator()(const T& x) {
    if constexpr (Plain<T>) {
      writer.number<T>(x);
    } else if constexpr (std::is_same_v<T, std::vector<std::byte>>) {
      writer.blob(x);
    } else if constexpr (kIsVector<T>) {
      writer.number<uint64_t>(x.size());
      for (const auto& item : x) (*this)(item);
    } else if constexpr (kIsOptional<T>) {
      writer.number<uint8_t>(x.has_value());
      if (x) (*this)(*x);
    } else {
      fields(*this, x);
    }
  }
  template <class E>
  void enumerator(const E& x, E) {
    writer.number<E>(x);
  }
  void text(const std::string& x, size_t) { writer.text(x); }
  void raw_text(const std::string& x, size_t) { writer.text(x); }
  void texts(const std::vector<std::string>& x, size_t) {
    writer.number<uint64_t>(x.size());
    for (const std::string& item : x) writer.text(item);
  }
  template <class... T>
  void variant(const std::variant<T...>& x) {
    writer.number<uint8_t>(static_cast<uint8_t>(x.index()));
    std::visit([this](const auto& item) { (*this)(item); }, x);
  }
  ByteWriter writer;
};

class In {
 public:
  explicit In(std::span<const std::byte> payload) : reader(payload) {}
  template <class T>
  void operator()(T& x) {
    if constexpr (Plain<T>) {
      x = reader.number<T>();
    } else if constexpr (std::is_same_v<T, std::vector<std::byte>>) {
      const auto bytes = reader.blob();
      x.assign(bytes.begin(), bytes.end());
    } else if constexpr (kIsVector<T>) {
      // Every item takes a byte at least, so a count cannot exceed what is left.
      const uint64_t count = reader.count(Plain<typename T::value_type> ? sizeof(x[0]) : 1);
      x.clear();
      for (uint64_t i = 0; i < count && reader.ok(); ++i) (*this)(x.emplace_back());
    } else if constexpr (kIsOptional<T>) {
      x.reset();
      if (reader.number<uint8_t>() != 0) (*this)(x.emplace());
    } else {
      fields(*this, x);
    }
  }
  template <class E>
  void enumerator(E& x, E last) {
    x = reader.enumerator<E>(last);
  }
  void text(std::string& x, size_t bytes_max) { x = reader.text(bytes_max); }
  void raw_text(std::string& x, size_t bytes_max) {
    const auto bytes = reader.blob();
    x.assign(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), bytes_max));
  }
  void texts(std::vector<std::string>& x, size_t bytes_max) {
    const uint64_t count = reader.count(8);
    for (uint64_t i = 0; i < count && reader.ok(); ++i) x.push_back(reader.text(bytes_max));
  }
  template <class... T>
  void variant(std::variant<T...>& x) {
    read_alternative<0>(x, reader.number<uint8_t>());
  }
  ByteReader reader;

 private:
  template <size_t index, class... T>
  void read_alternative(std::variant<T...>& x, size_t wanted) {
    if constexpr (index < sizeof...(T)) {
      if (wanted != index) return read_alternative<index + 1>(x, wanted);
      (*this)(x.template emplace<index>());
    } else {
      reader.enumerator<CacheKind>(CacheKind::kTarget);  // no such alternative
      failed = true;
    }
  }

 public:
  bool failed = false;
};

template <class T>
std::optional<T> complete(In& in, T& value) {
  if (in.failed || !in.reader.complete()) return std::nullopt;
  return std::move(value);
}

}  // namespace

std::vector<std::byte> encode(const EngineRequest& request) {
  Out out;
  out.variant(request);
  return std::move(out.writer).take();
}

std::vector<std::byte> encode(const EngineReply& reply) {
  Out out;
  out(reply);
  return std::move(out.writer).take();
}

std::optional<EngineRequest> decode_engine_request(std::span<const std::byte> payload) {
  In in(payload);
  EngineRequest request;
  in.variant(request);
  return complete(in, request);
}

std::optional<EngineReply> decode_engine_reply(std::span<const std::byte> payload) {
  In in(payload);
  EngineReply reply;
  in(reply);
  return complete(in, reply);
}

}  // namespace kv
