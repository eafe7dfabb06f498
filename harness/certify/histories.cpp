#include "harness/certify/histories.h"

#include <fmt/format.h>

#include <memory>

#include "harness/case/names.h"
#include "harness/engine/engine_service.h"
#include "harness/gen/draw_history.h"
#include "harness/history/twin.h"
#include "harness/judge/device_stage.h"
#include "harness/run/findings.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {

Case draw_engine_case(uint64_t seed, uint64_t number, const OfferSet& offered) {
  PhiloxSource choices(seed, number);
  Case c = draw_history(choices, {.attends = true, .offered = offered});
  draw_twin(choices, c);
  c.name = fmt::format("history {} of seed {}", number, seed);
  return c;
}

nlohmann::ordered_json history_json(const HistoryStats& s) {
  nlohmann::ordered_json json = {{"operations", s.operations},
                                 {"calls", s.calls},
                                 {"succeeded", s.succeeded},
                                 {"refused", s.refused},
                                 {"no_room", s.exhausted},
                                 {"not_offered", s.not_offered},
                                 {"steps", s.steps},
                                 {"slots_read", s.slots_read},
                                 {"value_steps", s.values.steps},
                                 {"value_steps_judged", s.values.steps_judged},
                                 {"value_rows", s.values.rows},
                                 {"value_elements", s.values.elements},
                                 {"value_rows_unread", s.values.rows_unread},
                                 {"twins", s.twins},
                                 {"twin_rows", s.values.shared},
                                 {"repeated_rows", s.values.repeats}};
  for (size_t i = 0; i < kOpKinds; ++i) json["met"][std::string(op_names()[i])] = s.met[i];
  return json;
}

std::string operations_per_second(const HistoryStats& s, double seconds) {
  return fmt::format("{:.0f} operations/s, ", static_cast<double>(s.operations) / seconds);
}

namespace {

/// Which operations there were, and which followed which.
std::string met_text(const HistoryStats& s) {
  size_t kinds = 0, pairs = 0;
  std::string missing;
  for (size_t i = 0; i < kOpKinds; ++i) {
    kinds += s.met[i] > 0;
    if (s.met[i] == 0) missing += fmt::format(", no {}", op_names()[i]);
    for (size_t j = 0; j < kOpKinds; ++j) pairs += s.adjacent[i][j] > 0;
  }
  return fmt::format("{} of {} operations and {} of {} pairs of adjacent ones{}", kinds, kOpKinds,
                     pairs, kOpKinds * kOpKinds, missing);
}

std::string not_judged(const ValueCounts& v) {
  if (v.not_offered) return "; the engine has no attention";
  if (v.rows_unread == 0) return "";
  return fmt::format("; {} rows not, whose rotated or quantised K and V were gone", v.rows_unread);
}

}  // namespace

std::string history_text(const HistoryStats& s) {
  const ValueCounts& v = s.values;
  const double fraction =
      v.steps == 0 ? 0 : static_cast<double>(v.steps_judged) / static_cast<double>(v.steps);
  return fmt::format(
      "histories   {} operations, {} calls: {} ok ({} steps), {} refused, {} without room{}; {} "
      "slots by content\n"
      "met         {}\n"
      "values      {} of {} steps with queries ({:.3f}), {} rows, {} elements against the "
      "reference{}\n"
      "twins       {} histories again under other circumstances: {} rows of equal tokens held "
      "against the first run's, {} against its own\n",
      s.operations, s.calls, s.succeeded, s.steps, s.refused, s.exhausted,
      s.not_offered == 0 ? "" : fmt::format(", {} not offered", s.not_offered), s.slots_read,
      met_text(s), v.steps_judged, v.steps, fraction, v.rows, v.elements, not_judged(v), s.twins,
      v.shared, v.repeats);
}

FrameServer serve_engine(const LoadedPlugin& plugin, const CudaRuntime& runtime) {
  const auto report = [&runtime] {
    DeviceReport report;
    for (const DeviceFinding& finding : decisive_findings(take_findings(runtime), {})) {
      std::string text = fmt::format("{} in kernel {}", finding.message, finding.kernel);
      const bool is_unknown = finding.kind == KV_SIMT_KIND_UNSUPPORTED;
      if (!is_unknown) report.findings.push_back(std::move(text));
      if (is_unknown && report.unsupported.empty()) report.unsupported = std::move(text);
    }
    return report;
  };
  auto service = std::make_shared<EngineService>(plugin.api->engine, report);
  return [service](std::span<const std::byte> payload) { return service->serve(payload); };
}

}  // namespace kv
