#include "harness/plan/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace kv {
namespace {

// A decode kernel runs a block for each request and KV head; fewer than this leave multiprocessors
// idle (132 on an H100 or H200; Flash-Decoding, 2023).
constexpr uint64_t kMultiprocessors = 132;
// Keys of one split: shorter ones cost more in merging than they gain.
constexpr uint64_t kSplitSlotsMin = 256;
// Rows of one step from which matrix products are bound by arithmetic rather than by reading the
// weights: 989e12 16-bit operations / 3.35e12 bytes a second is 295; two operations for each weight
// of two bytes make that the row count.
constexpr uint64_t kComputeBoundRows = 295;
constexpr uint64_t kDraftTokens = 4;
// Slots wasted at the ends of the last pages, in 1/10,000 of the slots in use.
constexpr uint64_t kWasteMax = 100;

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

Advice kernel_variant(const KvModel& model, const Workload& load, const CacheSize& size) {
  const bool full_precision = dtype_bytes(size.choice().dtype) == 4;
  const uint64_t heads =
      model.latent_dim > 0 ? 1 : std::max<uint64_t>(1, model.kv_heads / size.choice().ranks);
  const uint64_t blocks = load.batch * heads;
  const uint64_t splits = std::min(std::max<uint64_t>(1, kMultiprocessors / blocks),
                                   std::max<uint64_t>(1, load.context / kSplitSlotsMin));
  const std::string name = full_precision ? "mixed_fp32" : "mixed";
  const std::string common = fmt::format(
      "prefill chunks and decode rows share a step, each request's kernel depends on it alone; {} "
      "requests x {} KV heads are {} blocks for {} multiprocessors",
      load.batch, heads, blocks, kMultiprocessors);
  if (splits <= 1) return {"kernel variant", name, common};
  return {"kernel variant", fmt::format("{}, decode split {} ways", name, splits),
          fmt::format("{}: split the keys of a request, at least {} in each part", common,
                      kSplitSlotsMin)};
}

// Slots in use and slots of the whole pages that hold them.
std::pair<uint64_t, uint64_t> slots_of(const Workload& load, uint64_t page) {
  const auto whole = [page](uint64_t slots) { return (slots + page - 1) / page * page; };
  if (load.trace.empty()) {
    // The end of a request falls anywhere in its last page.
    return {2 * load.context, 2 * load.context + page - 1};
  }
  uint64_t used = 0, held = 0;
  for (const TraceRequest& r : load.trace) {
    const uint64_t slots = r.prompt_tokens + std::max<uint64_t>(r.output_tokens, 1) - 1;
    used += slots;
    held += whole(slots);
  }
  return {used, held};
}

Advice page_size(const Workload& load) {
  uint64_t best = 16, best_waste = 0;
  for (const uint64_t page : {16u, 32u, 64u, 128u, 256u}) {
    const auto [used, held] = slots_of(load, page);
    const uint64_t waste = (held - used) * 10'000 / held;
    if (page > 16 && waste > kWasteMax) break;
    best = page;
    best_waste = waste;
  }
  return {"page size", fmt::format("{} slots", best),
          fmt::format("{} wastes {}.{:02} % of the pool at the ends of requests; larger pages need "
                      "fewer table entries but would waste more than 1 % or exceed 256 slots",
                      load.trace.empty() ? "on average it" : "on this trace it", best_waste / 100,
                      best_waste % 100)};
}

Advice prefix_cache(const Workload& load) {
  const PrefixShare share = prefix_share(load.trace);
  if (share.blocks == 0) {
    return {"prefix cache", "on",
            "nothing is known of shared prompts; a miss costs one hash for each full page, a hit "
            "saves the prefill of a page"};
  }
  const uint64_t permille = share.repeated * 1000 / share.blocks;
  const std::string measured =
      fmt::format("{} of {} prompt blocks of {} tokens ({}.{} %) repeat a known prefix",
                  share.repeated, share.blocks, kTraceBlockTokens, permille / 10, permille % 10);
  return {"prefix cache", permille >= 10 ? "on" : "off", measured};
}

Result<Advice> kv_dtype(const KvModel& model, const CacheSize& size, const Workload& load) {
  const DType own = model.kv_dtype.value_or(model.dtype.value_or(size.choice().dtype));
  if (!load.cache_bytes) {
    return Advice{"K/V dtype", std::string(dtype_name(own)),
                  model.kv_dtype ? "the model brings the scales of its cache along"
                                 : "the memory is unknown (--memory-gib); the model's own type "
                                   "loses nothing"};
  }
  std::string tried;
  for (const DType type : {own, DType::kE4m3}) {
    if (type == DType::kE4m3 && !tried.empty() && dtype_bytes(own) == 1) break;
    CacheLayoutChoice choice = size.choice();
    choice.dtype = type;
    KV_ASSIGN_OR_RETURN(const CacheSize with, CacheSize::create(model, choice));
    const uint64_t need = with.request_bytes(load.context) * load.batch;
    tried += fmt::format("{}{} needs {:.1f} MiB of {:.1f}", tried.empty() ? "" : "; ",
                         dtype_name(type), mib(need), mib(*load.cache_bytes));
    if (need <= *load.cache_bytes) return Advice{"K/V dtype", std::string(dtype_name(type)), tried};
  }
  return Advice{"K/V dtype", "none fits", tried + ": more ranks, or a smaller batch or context"};
}

Advice speculation(const CacheSize& size, const Workload& load) {
  const uint64_t rows = load.batch * (kDraftTokens + 1);
  const uint64_t cache = size.request_live_bytes(load.context) * load.batch;
  const std::string bytes =
      load.weight_bytes > 0
          ? fmt::format("a decode step reads {:.1f} MiB of weights and {:.1f} MiB of K/V",
                        mib(load.weight_bytes), mib(cache))
          : fmt::format("a decode step reads {:.1f} MiB of K/V and all weights", mib(cache));
  if (rows > kComputeBoundRows) {
    return {"speculation", "off",
            fmt::format("verifying {} tokens of {} requests makes {} rows a step; from about {} "
                        "rows arithmetic, not memory, is the limit",
                        kDraftTokens, load.batch, rows, kComputeBoundRows)};
  }
  return {"speculation", fmt::format("on, {} draft tokens", kDraftTokens),
          fmt::format("{}, once for up to {} tokens instead of one; {} rows a step stay below {}",
                      bytes, kDraftTokens + 1, rows, kComputeBoundRows)};
}

}  // namespace

PrefixShare prefix_share(std::span<const TraceRequest> trace) {
  PrefixShare share;
  std::unordered_set<uint64_t> known;  // looked up only
  for (const TraceRequest& request : trace) {
    size_t hit = 0;
    while (hit < request.blocks.size() && known.contains(request.blocks[hit])) ++hit;
    share.repeated += hit;
    share.blocks += request.blocks.size();
    known.insert(request.blocks.begin() + static_cast<ptrdiff_t>(hit), request.blocks.end());
  }
  return share;
}

Result<std::vector<Advice>> advise(const KvModel& model, const CacheSize& size,
                                   const Workload& load) {
  KV_ASSIGN_OR_RETURN(Advice dtype, kv_dtype(model, size, load));
  return std::vector<Advice>{kernel_variant(model, load, size), page_size(load), prefix_cache(load),
                             std::move(dtype), speculation(size, load)};
}

}  // namespace kv
