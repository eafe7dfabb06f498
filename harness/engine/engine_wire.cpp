#include "harness/engine/engine_wire.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

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

template <class T>
constexpr bool kIsPlainVector = false;
template <class T>
constexpr bool kIsPlainVector<std::vector<T>> = Plain<T> || std::is_same_v<T, std::byte>;

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
  io(x.requests), io.prefixes(x.prefixes), io(x.in_flight), io(x.copies), io(x.counters);
}
template <Of<Answer> S>
void fields(auto& io, S& x) {
  io.enumerator(x.status, CallStatus::kExhausted), io.text(x.message, kTextMax);
  io(x.handle), io(x.length), io(x.draft_length), io(x.step), io(x.evicted), io(x.saved);
}
template <Of<SlotPlace> S>
void fields(auto& io, S& x) {
  io(x.by_page), io(x.holder), io(x.slot), io(x.layer), io(x.slots);
}
template <Of<SlotBytes> S>
void fields(auto& io, S& x) {
  io.enumerator(x.status, CallStatus::kExhausted), io(x.key), io(x.value);
  io(x.key_scales), io(x.value_scales);
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
template <Of<DeviceReport> S>
void fields(auto& io, S& x) {
  io.texts(x.findings, kTextMax), io.text(x.unsupported, kTextMax);
}
template <Of<EngineReply> S>
void fields(auto& io, S& x) {
  io(x.error), io(x.answer), io(x.target), io(x.draft), io(x.slots), io(x.outputs);
  io(x.shift_turns), io(x.device);
}

// ---------------------------------------------------------------- out and in

/// Prefixes are many: each of their fields crosses as one array.
struct PrefixArrays {
  std::vector<int32_t> parents, pages;
  std::vector<uint64_t> side_inputs, numbers;
  std::vector<int64_t> position_offsets;
  std::vector<uint32_t> page_counts;
  std::vector<uint8_t> follow;  // their tokens do
  void reserve(size_t count) {
    parents.reserve(count), pages.reserve(count), side_inputs.reserve(count);
    numbers.reserve(count), position_offsets.reserve(count), page_counts.reserve(count);
    follow.reserve(count);
  }
  void all(auto& io) {
    io(parents), io(pages), io(side_inputs), io(numbers), io(position_offsets), io(page_counts);
    io(follow);
  }
};

class Out {
 public:
  explicit Out(PagesTold* pages_told = nullptr)
      : told(pages_told), last_told(pages_told == nullptr ? 0 : pages_told->last_number) {}
  template <class T>
  void operator()(const T& x) {
    if constexpr (Plain<T>) {
      writer.number<T>(x);
    } else if constexpr (kIsPlainVector<T>) {
      writer.blob(std::as_bytes(std::span(x)));
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
  void prefixes(const std::vector<PrefixState>& x) {
    PrefixArrays a;
    a.reserve(x.size());
    for (const PrefixState& p : x) {
      a.parents.push_back(p.parent);
      a.side_inputs.push_back(p.side_input);
      a.position_offsets.push_back(p.position_offset);
      a.numbers.push_back(p.tokens.number());
      a.follow.push_back(p.tokens.number() == 0 || p.tokens.number() > last_told);
      a.page_counts.push_back(static_cast<uint32_t>(p.pages.size()));
      a.pages.insert(a.pages.end(), p.pages.begin(), p.pages.end());
      told->last_number = std::max(told->last_number, p.tokens.number());
    }
    a.all(*this);
    for (size_t i = 0; i < x.size(); ++i) {
      if (a.follow[i] != 0) writer.blob(std::as_bytes(x[i].tokens.all()));
    }
  }
  template <class... T>
  void variant(const std::variant<T...>& x) {
    writer.number<uint8_t>(static_cast<uint8_t>(x.index()));
    std::visit([this](const auto& item) { (*this)(item); }, x);
  }
  ByteWriter writer;
  PagesTold* told;
  uint64_t last_told;  // before this reply
};

class In {
 public:
  explicit In(std::span<const std::byte> payload, PagesHeard* pages_heard = nullptr)
      : reader(payload), heard(pages_heard) {}
  template <class T>
  void operator()(T& x) {
    if constexpr (Plain<T>) {
      x = reader.number<T>();
    } else if constexpr (kIsPlainVector<T>) {
      const auto bytes = reader.blob();
      failed |= bytes.size() % sizeof(x[0]) != 0;
      x.resize(bytes.size() / sizeof(x[0]));
      if (!x.empty()) std::memcpy(x.data(), bytes.data(), x.size() * sizeof(x[0]));
    } else if constexpr (kIsVector<T>) {
      // Every item takes a byte at least, so a count cannot exceed what is left.
      const uint64_t count = reader.count(1);
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
  void prefixes(std::vector<PrefixState>& x) {
    if (!std::exchange(heard_states, true)) heard->pages.begin();
    PrefixArrays a;
    a.all(*this);
    const size_t count = a.parents.size();
    const uint64_t pages = std::accumulate(a.page_counts.begin(), a.page_counts.end(), uint64_t{0});
    failed |= a.side_inputs.size() != count || a.numbers.size() != count ||
              a.position_offsets.size() != count || a.page_counts.size() != count ||
              a.follow.size() != count || a.pages.size() != pages;
    std::span<const int32_t> rest = a.pages;
    x.clear();
    x.reserve(failed ? 0 : count);
    for (size_t i = 0; i < count && !failed; ++i) {
      PrefixState& p = x.emplace_back(PrefixState{.parent = a.parents[i],
                                                  .side_input = a.side_inputs[i],
                                                  .position_offset = a.position_offsets[i],
                                                  .tokens = tokens_of(a.numbers[i], a.follow[i]),
                                                  .pages = {}});
      p.pages.assign(rest.first(a.page_counts[i]));
      rest = rest.subspan(a.page_counts[i]);
    }
  }
  template <class... T>
  void variant(std::variant<T...>& x) {
    read_alternative<0>(x, reader.number<uint8_t>());
  }
  ByteReader reader;
  PagesHeard* heard;

 private:
  PageTokens tokens_of(uint64_t number, uint8_t follows) {
    if (follows == 0) {
      PageTokens* known = heard->pages.find(number);
      failed |= known == nullptr;
      return known == nullptr ? PageTokens() : heard->pages.add(number, std::move(*known));
    }
    std::vector<uint64_t> tokens;
    (*this)(tokens);
    PageTokens now(std::move(tokens), number);
    return number == 0 ? now : heard->pages.add(number, std::move(now));
  }
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
  bool heard_states = false;  // of this reply
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

std::vector<std::byte> encode(const EngineReply& reply, PagesTold& told) {
  Out out(&told);
  out(reply);
  return std::move(out.writer).take();
}

std::optional<EngineRequest> decode_engine_request(std::span<const std::byte> payload) {
  In in(payload);
  EngineRequest request;
  in.variant(request);
  return complete(in, request);
}

std::optional<EngineReply> decode_engine_reply(std::span<const std::byte> payload,
                                               PagesHeard& heard) {
  In in(payload, &heard);
  EngineReply reply;
  in(reply);
  return complete(in, reply);
}

}  // namespace kv
