#include "impl/plugin/engine_level.h"

namespace kvattn {
namespace {

uint32_t count_of(const auto& list) { return static_cast<uint32_t>(list.size()); }

template <class To, class Id>
std::vector<To> numbers(std::span<const Id> ids) {
  std::vector<To> out;
  out.reserve(ids.size());
  for (Id id : ids) out.push_back(static_cast<To>(index_of(id)));
  return out;
}
template <class To, class Id>
std::vector<To> numbers(const std::vector<Id>& ids) {
  return numbers<To>(std::span<const Id>(ids));
}

kv_engine_counters counters_of(const CacheCounters& c) {
  return {.struct_bytes = sizeof(kv_engine_counters),
          .hit_pages = c.hit_pages,
          .published_pages = c.published_pages,
          .evicted_pages = c.evicted_pages,
          .expired_pages = c.expired_pages,
          .copied_slots = c.copied_slots,
          .swapped_out_pages = c.swapped_out_pages,
          .swapped_in_pages = c.swapped_in_pages,
          .fenced_pages = c.fenced_pages};
}

kv_snapshot_copy copy_of(const SlotCopy& c) {
  return {.struct_bytes = sizeof(kv_snapshot_copy),
          .group = static_cast<uint32_t>(index_of(c.group)),
          .from_page = static_cast<uint32_t>(index_of(c.from)),
          .from_slot = static_cast<uint32_t>(c.from_slot),
          .to_page = static_cast<uint32_t>(index_of(c.to)),
          .to_slot = static_cast<uint32_t>(c.to_slot),
          .slots = static_cast<uint32_t>(c.slots)};
}

}  // namespace

std::vector<int32_t>& SnapshotArrays::keep(std::vector<int32_t> list) {
  numbers_.push_back(std::move(list));
  return numbers_.back();
}

kv_snapshot SnapshotArrays::fill(CacheSnapshot snapshot, const PagedCache& cache,
                                 std::span<const SlotCopy> copies) {
  snapshot_ = std::move(snapshot);
  numbers_.clear();
  requests_.clear();
  prefixes_.clear();
  copies_.clear();
  free_ = numbers<uint32_t>(snapshot_.free_pages);
  fenced_ = numbers<uint32_t>(snapshot_.fenced_pages);
  cached_ = numbers<uint32_t>(snapshot_.cached_pages);
  host_free_ = numbers<uint32_t>(snapshot_.host_free_pages);
  in_flight_ = numbers<uint64_t>(snapshot_.steps_in_flight);
  for (const RequestSnapshot& r : snapshot_.requests) {
    std::vector<int32_t> table;
    for (const auto& group : r.tables) {
      for (Page page : group) table.push_back(index_of(page));
    }
    const auto pages = static_cast<uint32_t>(r.tables.empty() ? 0 : r.tables[0].size());
    requests_.push_back({.struct_bytes = sizeof(kv_snapshot_request),
                         .request = index_of(r.request),
                         .state = static_cast<uint32_t>(r.state),
                         .batch_slot = index_of(r.batch_slot),
                         .owner = index_of(r.owner),
                         .handle = index_of(r.ticket),
                         .side_input = index_of(r.side_input),
                         .length = static_cast<uint64_t>(r.length.value),
                         .position_offset = r.position_offset,
                         .page_count = pages,
                         .pages = keep(std::move(table)).data()});
  }
  for (const PrefixSnapshot& p : snapshot_.prefixes) {
    static_assert(sizeof(Token) == sizeof(uint64_t) && sizeof(Page) == sizeof(int32_t));
    prefixes_.push_back({.struct_bytes = sizeof(kv_snapshot_prefix),
                         .parent = p.parent,
                         .side_input = index_of(p.side_input),
                         .position_offset = p.position_offset,
                         .tokens = reinterpret_cast<const uint64_t*>(p.tokens.data()),
                         .pages = reinterpret_cast<const int32_t*>(p.pages.data()),
                         .identity = p.identity});
  }
  for (const SlotCopy& c : copies) copies_.push_back(copy_of(c));
  const PagedCacheConfig& config = cache.config();
  return {.struct_bytes = sizeof(kv_snapshot),
          .page_count = static_cast<uint32_t>(config.pages.value),
          .group_count = count_of(config.groups),
          .page_slots = static_cast<uint32_t>(config.page_slots),
          .reference_counts = snapshot_.reference_counts.data(),
          .free_pages = free_.data(),
          .free_count = count_of(free_),
          .fenced_pages = fenced_.data(),
          .fenced_count = count_of(fenced_),
          .cached_pages = cached_.data(),
          .cached_count = count_of(cached_),
          .requests = requests_.data(),
          .request_count = count_of(requests_),
          .prefixes = prefixes_.data(),
          .prefix_count = count_of(prefixes_),
          .host_page_count = static_cast<uint32_t>(config.host_pages.value),
          .host_free_pages = host_free_.data(),
          .host_free_count = count_of(host_free_),
          .steps_in_flight = in_flight_.data(),
          .steps_in_flight_count = count_of(in_flight_),
          .copies = copies_.data(),
          .copy_count = count_of(copies_),
          .counters = counters_of(cache.counters())};
}

}  // namespace kvattn
