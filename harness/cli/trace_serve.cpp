// `kverify trace serve`: a serving trace through the production page manager.
#include "harness/cli/trace_serve.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "harness/case/text_file.h"
#include "harness/cli/version.h"
#include "harness/serving/batching.h"
#include "harness/serving/page_use.h"
#include "harness/serving/pool_picture.h"
#include "harness/serving/prefix_hits.h"

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Trace = std::vector<TraceRequest>;
using Clock = std::chrono::steady_clock;

constexpr size_t kPointsMax = 64;       // of the curve, and of the table
constexpr size_t kPoolMomentsMax = 32;  // of thousands of steps, evenly

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// What is printed and what is written. Times go to standard output alone.
struct Report {
  const Output& output;
  Json json;

  void line(const char* what, const std::string& says) const {
    output.say(fmt::format("{:<12}{}\n", what, says));
  }
};

Result<void> report_prefixes(const Trace& trace, const TraceServeOptions& options,
                             uint64_t page_slots, Report& report) {
  const IdealHits ideal = ideal_hits(trace);
  report.line("ideal",
              fmt::format("{} of {} blocks of {} tokens repeat a known prefix by the "
                          "trace's ids ({} of them last blocks that are not full)",
                          ideal.hits, ideal.blocks, kTraceBlockTokens, ideal.partial_hits));
  report.json["ideal"] = {
      {"blocks", ideal.blocks}, {"hits", ideal.hits}, {"partial_hits", ideal.partial_hits}};
  report.json["prefix_hits"] = Json::array();
  auto pools = options.pages;
  if (pools.empty()) pools = {0, 100'000, 20'000, 2'000};
  for (const uint64_t pool : pools) {
    const auto started = Clock::now();
    KV_ASSIGN_OR_RETURN(const PrefixHits hits,
                        serve_prefixes(trace, {.pool_pages = pool, .page_slots = page_slots}));
    report.line(
        "prefixes",
        fmt::format("{:>9} pages{}: {} full pages hit of {} of {} slots ({:.2f} %), {} "
                    "evicted, {} requests refused; {:.1f} s",
                    hits.pool_pages, pool == 0 ? " (no eviction)" : "", hits.hit_pages,
                    hits.prompt_pages, page_slots, percent(hits.hit_pages, hits.prompt_pages),
                    hits.evicted_pages, hits.refused, seconds_since(started)));
    report.json["prefix_hits"].push_back({{"pool_pages", hits.pool_pages},
                                          {"prompt_pages", hits.prompt_pages},
                                          {"hit_pages", hits.hit_pages},
                                          {"evicted_pages", hits.evicted_pages},
                                          {"refused", hits.refused}});
  }
  return {};
}

Result<void> report_pages(const Trace& trace, uint64_t page_slots, Report& report) {
  for (const bool with_last : {false, true}) {
    KV_ASSIGN_OR_RETURN(const PageUse use,
                        page_use(trace, {.page_slots = page_slots, .with_last_token = with_last}));
    const auto unused = [&](uint64_t reserved) { return 100 * fragmentation(reserved, use.slots); };
    report.line("pages",
                fmt::format("{} of {} slots for {} tokens{}: internal fragmentation {:.3f} %; "
                            "contiguous at the longest {:.3f} %, buddy {:.3f} %",
                            use.pages, page_slots, use.slots,
                            with_last ? ", last sampled ones counted" : "", unused(use.paged_slots),
                            unused(use.contiguous_slots), unused(use.buddy_slots)));
    report.json[with_last ? "pages_with_last_token" : "pages"] = {
        {"pages", use.pages},
        {"slots", use.slots},
        {"paged_slots", use.paged_slots},
        {"contiguous_slots", use.contiguous_slots},
        {"buddy_slots", use.buddy_slots}};
  }
  return {};
}

Json moments_json(const std::vector<PoolMoment>& moments) {
  Json json = Json::array();
  const size_t stride =
      std::max<size_t>(1, (moments.size() + kPoolMomentsMax - 1) / kPoolMomentsMax);
  for (size_t i = 0; i < moments.size(); i += stride) {
    const PoolMoment& m = moments[i];
    json.push_back({{"step", m.step},
                    {"requests", m.requests},
                    {"held_pages", m.held_pages},
                    {"table_pages", m.table_pages},
                    {"held_slots", m.held_slots},
                    {"returned_pages", m.returned_pages},
                    {"contiguous_free", m.contiguous.free},
                    {"contiguous_longest", m.contiguous.longest}});
  }
  return json;
}

void report_memory(const ManagedService& service, const ServeOptions& options, Report& report) {
  double internal = 0, external = 0;
  for (const PoolMoment& m : service.moments) {
    internal += internal_fragmentation(m, options.page_slots);
    external += external_fragmentation(m.contiguous);
  }
  const double moments = std::max<double>(1, static_cast<double>(service.moments.size()));
  report.line(
      "memory",
      fmt::format("{} pages returned; fragmentation on average: internal {:.3f} %, external "
                  "none; one run for each request instead: external {:.2f} %, {} requests "
                  "blocked by gaps, {} without room",
                  service.returned_pages, 100 * internal / moments, 100 * external / moments,
                  service.blocked_by_gaps, service.without_room));
}

Result<void> report_batchings(const Trace& trace, const ServeOptions& base, Report& report) {
  for (const Batching batching : {Batching::kStatic, Batching::kContinuous}) {
    const auto started = Clock::now();
    ServeOptions options = base;
    options.batching = batching;
    KV_ASSIGN_OR_RETURN(const ManagedService service, serve_managed(trace, options));
    const char* name = batching == Batching::kStatic ? "static" : "continuous";
    const Served& served = service.served;
    report.line("batching",
                fmt::format("{}, {} slots: {} decode steps, {:.2f} rows in each; {:.1f} s", name,
                            options.batch_slots, served.steps,
                            percent(served.row_steps, served.steps) / 100, seconds_since(started)));
    report.json["batching"][name] = {{"batch_slots", options.batch_slots},
                                     {"steps", served.steps},
                                     {"row_steps", served.row_steps},
                                     {"pool_pages", service.pool_pages},
                                     {"returned_pages", service.returned_pages},
                                     {"blocked_by_gaps", service.blocked_by_gaps},
                                     {"without_room", service.without_room},
                                     {"pool_over_time", moments_json(service.moments)}};
    report_memory(service, options, report);
  }
  return {};
}

struct Waits {
  std::vector<uint64_t> queue_steps, queue_bytes, end_steps, end_bytes;
};

Waits waits_of(const Served& served) {
  Waits waits;
  for (const ServedRequest& r : served.requests) {
    if (r.refused) continue;
    waits.queue_steps.push_back(r.admitted.step - r.arrived.step);
    waits.queue_bytes.push_back(r.admitted.bytes - r.arrived.bytes);
    waits.end_steps.push_back(r.finished.step - r.arrived.step);
    waits.end_bytes.push_back(r.finished.bytes - r.arrived.bytes);
  }
  return waits;
}

Result<void> report_point(const Trace& trace, const ServeOptions& options, Report& report) {
  KV_ASSIGN_OR_RETURN(const ManagedService service, serve_managed(trace, options));
  const Waits waits = waits_of(service.served);
  const auto both = [](const std::vector<uint64_t>& values) {
    return Json{{"p50", percentile(values, 50)}, {"p99", percentile(values, 99)}};
  };
  const auto gib = [](const std::vector<uint64_t>& values, uint32_t rank) {
    return static_cast<double>(percentile(values, rank)) / (1u << 30);
  };
  const auto limit = [](uint64_t n, const char* none) { return n ? std::to_string(n) : none; };
  report.line(
      "waits",
      fmt::format(
          "{}, context {}, batch {}, open {}: {} refused; queue p50/p99 {}/{} steps, "
          "{:.0f}/{:.0f} GiB; completion {}/{} steps, {:.0f}/{:.0f} GiB",
          options.step_ns == 0 ? "all at the start"
                               : fmt::format("as recorded, {} ms a step", options.step_ns / 1e6),
          limit(options.context_limit, "any"), options.batch_slots,
          limit(options.concurrency, "all"), service.served.refused,
          percentile(waits.queue_steps, 50), percentile(waits.queue_steps, 99),
          gib(waits.queue_bytes, 50), gib(waits.queue_bytes, 99), percentile(waits.end_steps, 50),
          percentile(waits.end_steps, 99), gib(waits.end_bytes, 50), gib(waits.end_bytes, 99)));
  report.json["waits"].push_back({{"step_ns", options.step_ns},
                                  {"context_limit", options.context_limit},
                                  {"batch_slots", options.batch_slots},
                                  {"concurrency", options.concurrency},
                                  {"refused", service.served.refused},
                                  {"steps", service.served.steps},
                                  {"queue_steps", both(waits.queue_steps)},
                                  {"queue_bytes", both(waits.queue_bytes)},
                                  {"completion_steps", both(waits.end_steps)},
                                  {"completion_bytes", both(waits.end_bytes)}});
  return {};
}

uint64_t step_ns(double step_ms) { return static_cast<uint64_t>(step_ms * 1e6); }

Result<void> report_waits(const Trace& trace, const TraceServeOptions& options,
                          const ServeOptions& base, Report& report) {
  report.json["waits"] = Json::array();
  for (const double step_ms : options.step_ms) {
    for (const uint64_t context : options.contexts) {
      for (const uint64_t batch : options.batches) {
        for (const uint64_t concurrency : options.concurrency) {
          ServeOptions point = base;
          point.step_ns = step_ns(step_ms);
          point.context_limit = context;
          point.batch_slots = static_cast<uint32_t>(batch);
          point.concurrency = concurrency;
          KV_RETURN_IF_ERROR(report_point(trace, point, report));
        }
      }
    }
  }
  return {};
}

Result<void> check_points(const TraceServeOptions& o) {
  const size_t points =
      o.contexts.size() * o.batches.size() * o.concurrency.size() * o.step_ms.size();
  if (points <= kPointsMax && o.pages.size() <= kPointsMax) return {};
  return bad_input(
      fmt::format("trace serve: expected at most {} pools and {} rows of the table, "
                  "got {} and {}",
                  kPointsMax, kPointsMax, o.pages.size(), points));
}

}  // namespace

Result<Json> serving_tables(const Trace& trace, const TraceServeOptions& options,
                            const Output& output) {
  const bool has_blocks = !trace[0].blocks.empty();
  ServeOptions base{.batch_slots = options.slots,
                    .page_slots = static_cast<uint32_t>(
                        options.page_slots.value_or(has_blocks ? kTraceBlockTokens : 16)),
                    .token_bytes = options.token_bytes};
  Report report{output, {{"page_slots", base.page_slots}, {"token_bytes", base.token_bytes}}};
  if (has_blocks) {
    KV_RETURN_IF_ERROR(report_prefixes(trace, options, base.page_slots, report));
  } else if (!options.pages.empty()) {
    return bad_input("--pages: expected a trace with block ids, got one without");
  }
  KV_RETURN_IF_ERROR(report_pages(trace, base.page_slots, report));
  KV_RETURN_IF_ERROR(report_batchings(trace, base, report));
  KV_RETURN_IF_ERROR(report_waits(trace, options, base, report));
  if (!options.svg_path.empty()) {
    base.step_ns = step_ns(options.step_ms.back());
    KV_ASSIGN_OR_RETURN(const ManagedService service, serve_managed(trace, base));
    KV_RETURN_IF_ERROR(write_text_file(
        options.svg_path,
        pool_svg(service.moments, {.title = options.trace_path, .page_slots = base.page_slots})));
  }
  return std::move(report.json);
}

Result<ExitCode> trace_serve(const TraceServeOptions& options) {
  const auto started = Clock::now();
  const Output output(options.json_path);
  KV_RETURN_IF_ERROR(check_points(options));
  KV_ASSIGN_OR_RETURN(Trace trace, read_trace(options.trace_path));
  if (options.requests && *options.requests < trace.size()) trace.resize(*options.requests);
  Report report{output,
                {{"kverify", kVersion}, {"command", "trace serve"}, {"requests", trace.size()}}};
  report.line("trace",
              fmt::format("{}: {} requests in file order", options.trace_path, trace.size()));
  KV_ASSIGN_OR_RETURN(const Json tables, serving_tables(trace, options, output));
  report.json.update(tables);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report.line("machine", fmt::format("{:.1f} s, {} MiB at most", seconds_since(started),
                                     usage.ru_maxrss / 1024));
  KV_RETURN_IF_ERROR(output.finish(report.json));
  return ExitCode::kPass;
}

}  // namespace kv::cli
