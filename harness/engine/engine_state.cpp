#include "harness/engine/engine_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/case/limits.h"

namespace kv {
namespace {

// More of anything is a mistake, not a cache.
constexpr uint64_t kCountMax = limits::kSlotsMax;
// Of the prefixes of one snapshot all tokens are looked at when there are no more; else those of
// one known prefix in so many.
constexpr uint64_t kTokensLookedAt = 1u << 16, kSnapshotsUnseen = 64;

template <class Number>
Error malformed(const char* what, const std::string& expected, Number got) {
  return bad_input(fmt::format("snapshot: {}: expected {}, got {}", what, expected, got));
}

/// What block tables and prefixes are laid out by.
Result<void> check_strides(uint32_t groups, uint32_t page_slots) {
  if (groups < 1 || groups > limits::kLayersMax) {
    return malformed("group_count", fmt::format("1 to {}", limits::kLayersMax), groups);
  }
  if (page_slots < 1 || page_slots > limits::kPageSlotsMax) {
    return malformed("page_slots", fmt::format("1 to {}", limits::kPageSlotsMax), page_slots);
  }
  return {};
}

Result<void> check_size(const char* what, uint64_t expected, uint64_t got) {
  if (got == expected) return {};
  return malformed(what, fmt::format("{} items", expected), got);
}

template <class From, class To>
Result<void> copy_array(const char* what, const From* from, uint64_t count, std::vector<To>& to) {
  if (count > kCountMax) return malformed(what, fmt::format("at most {} items", kCountMax), count);
  if (count > 0 && from == nullptr) return malformed(what, "an array", 0);
  to.assign(from, from + count);
  return {};
}

/// An array of structs, each as long as the first one says: a plugin may know fewer fields at their
/// end than `whole`, but no fewer bytes than `least`, or more.
template <class Struct>
class Structs {
 public:
  Structs(const Struct* first, uint64_t count) : first_(first), count_(count) {}
  Result<void> check(const char* what, size_t least) const {
    if (count_ > kCountMax) {
      return malformed(what, fmt::format("at most {} items", kCountMax), count_);
    }
    if (count_ == 0) return {};
    if (first_ == nullptr) return malformed(what, "an array", 0);
    if (first_->struct_bytes >= least && first_->struct_bytes <= kStructBytesMax) return {};
    return malformed(what, fmt::format("struct_bytes of {} to {}", least, kStructBytesMax),
                     first_->struct_bytes);
  }
  Struct operator[](uint64_t i) const {
    Struct whole = {};
    const size_t stride = first_->struct_bytes;
    std::memcpy(&whole, reinterpret_cast<const std::byte*>(first_) + i * stride,
                std::min(stride, sizeof whole));
    return whole;
  }

 private:
  static constexpr size_t kStructBytesMax = 4096;
  const Struct* first_;
  uint64_t count_;
};

Result<RequestState> copy_request(const kv_snapshot_request& r, uint32_t groups) {
  RequestState out{.request = RequestId(r.request),
                   .batch_slot = r.batch_slot,
                   .owner = r.owner,
                   .handle = r.handle,
                   .side_input = r.side_input,
                   .length = r.length,
                   .position_offset = r.position_offset,
                   .tables = {}};
  if (r.state > KV_REQUEST_SWAPPED) return malformed("requests.state", "KV_REQUEST_*", r.state);
  out.life = static_cast<Life>(r.state);
  out.tables.resize(groups);
  for (uint32_t g = 0; g < groups; ++g) {
    const int32_t* pages = r.pages == nullptr ? nullptr : r.pages + uint64_t{g} * r.page_count;
    KV_RETURN_IF_ERROR(copy_array("requests.pages", pages, r.page_count, out.tables[g]));
  }
  return out;
}

Result<PrefixState> copy_prefix(const kv_snapshot& s, const kv_snapshot_prefix& p,
                                KnownPrefixes& known) {
  PrefixState out{.parent = p.parent,
                  .side_input = p.side_input,
                  .position_offset = p.position_offset,
                  .tokens = {},
                  .pages = {}};
  KV_ASSIGN_OR_RETURN(out.tokens, known.tokens_of(p, s.page_slots));
  if (p.pages == nullptr) return malformed("prefixes.pages", "an array", 0);
  out.pages.assign({p.pages, s.group_count});
  return out;
}

EngineCounters copy_counters(const kv_engine_counters& c) {
  return {.hit_pages = c.hit_pages,
          .published_pages = c.published_pages,
          .evicted_pages = c.evicted_pages,
          .expired_pages = c.expired_pages,
          .copied_slots = c.copied_slots,
          .swapped_out_pages = c.swapped_out_pages,
          .swapped_in_pages = c.swapped_in_pages,
          .fenced_pages = c.fenced_pages};
}

}  // namespace

void KnownPrefixes::begin_snapshot(uint64_t prefix_count) {
  ++snapshots_;
  prefix_count_ = prefix_count;
  known_.begin();
}

Result<PageTokens> KnownPrefixes::tokens_of(const kv_snapshot_prefix& p, uint32_t page_slots) {
  if (p.tokens == nullptr) return malformed("prefixes.tokens", "an array", 0);
  const std::span<const uint64_t> now(p.tokens, page_slots);
  const auto number = [&] { return p.identity == 0 ? 0 : ++numbers_; };
  const auto copy = [&] { return PageTokens(std::vector(now.begin(), now.end()), number()); };
  if (p.identity == 0) return copy();
  PageTokens* known = known_.find(p.identity);
  const bool is_cheap = prefix_count_ * page_slots <= kTokensLookedAt;
  const bool is_due = is_cheap || (p.identity + snapshots_) % kSnapshotsUnseen == 0;
  if (known != nullptr && is_due && !std::ranges::equal(known->all(), now)) {
    return malformed("prefixes.tokens", "those that its identity had before", p.identity);
  }
  return known_.add(p.identity, known == nullptr ? copy() : std::move(*known));
}

const RequestState* EngineState::find(RequestId request) const {
  for (const RequestState& r : requests) {
    if (r.request == request) return &r;
  }
  return nullptr;
}

Result<EngineState> copy_snapshot(const kv_snapshot& s, KnownPrefixes& known) {
  KV_RETURN_IF_ERROR(check_strides(s.group_count, s.page_slots));
  EngineState out{.page_count = s.page_count,
                  .group_count = s.group_count,
                  .page_slots = s.page_slots,
                  .host_page_count = s.host_page_count};
  KV_RETURN_IF_ERROR(
      copy_array("reference_counts", s.reference_counts, s.page_count, out.references));
  KV_RETURN_IF_ERROR(copy_array("free_pages", s.free_pages, s.free_count, out.free));
  KV_RETURN_IF_ERROR(copy_array("fenced_pages", s.fenced_pages, s.fenced_count, out.fenced));
  KV_RETURN_IF_ERROR(copy_array("cached_pages", s.cached_pages, s.cached_count, out.cached));
  KV_RETURN_IF_ERROR(
      copy_array("host_free_pages", s.host_free_pages, s.host_free_count, out.host_free));
  KV_RETURN_IF_ERROR(
      copy_array("steps_in_flight", s.steps_in_flight, s.steps_in_flight_count, out.in_flight));
  const Structs requests(s.requests, s.request_count);
  const Structs prefixes(s.prefixes, s.prefix_count);
  const Structs copies(s.copies, s.copy_count);
  KV_RETURN_IF_ERROR(requests.check("requests", sizeof *s.requests));
  KV_RETURN_IF_ERROR(prefixes.check("prefixes", offsetof(kv_snapshot_prefix, identity)));
  KV_RETURN_IF_ERROR(copies.check("copies", sizeof *s.copies));
  out.requests.reserve(s.request_count);
  for (uint32_t i = 0; i < s.request_count; ++i) {
    KV_ASSIGN_OR_RETURN(RequestState request, copy_request(requests[i], s.group_count));
    out.requests.push_back(std::move(request));
  }
  out.prefixes.reserve(s.prefix_count);
  known.begin_snapshot(s.prefix_count);
  for (uint32_t i = 0; i < s.prefix_count; ++i) {
    KV_ASSIGN_OR_RETURN(PrefixState prefix, copy_prefix(s, prefixes[i], known));
    out.prefixes.push_back(std::move(prefix));
  }
  for (uint32_t i = 0; i < s.copy_count; ++i) {
    const kv_snapshot_copy c = copies[i];
    out.copies.push_back({c.group, c.from_page, c.from_slot, c.to_page, c.to_slot, c.slots});
  }
  out.counters = copy_counters(s.counters);
  KV_RETURN_IF_ERROR(check_shape(out));
  return out;
}

Result<void> check_shape(const EngineState& s) {
  KV_RETURN_IF_ERROR(check_strides(s.group_count, s.page_slots));
  if (s.host_page_count > kCountMax) {
    return malformed("host_page_count", fmt::format("at most {}", kCountMax), s.host_page_count);
  }
  KV_RETURN_IF_ERROR(check_size("reference_counts", s.page_count, s.references.size()));
  for (const RequestState& request : s.requests)
    KV_RETURN_IF_ERROR(check_size("requests.pages", s.group_count, request.tables.size()));
  for (size_t i = 0; i < s.prefixes.size(); ++i) {
    const PrefixState& prefix = s.prefixes[i];
    KV_RETURN_IF_ERROR(check_size("prefixes.tokens", s.page_slots, prefix.tokens.size()));
    KV_RETURN_IF_ERROR(check_size("prefixes.pages", s.group_count, prefix.pages.size()));
    const auto index = static_cast<int64_t>(i);
    if (prefix.parent < -1 || prefix.parent >= index) {
      return malformed("prefixes.parent", fmt::format("-1 to {}", index - 1), prefix.parent);
    }
  }
  return {};
}

}  // namespace kv
