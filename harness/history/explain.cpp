#include "harness/history/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/case/data.h"
#include "harness/case/names.h"
#include "harness/history/twin.h"

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEventsMax = 8;

size_t group_of(const Case& c, int64_t layer) {
  const auto groups = cache_groups(c);
  size_t group = 0;
  for (int64_t l = layer; group + 1 < groups.size() && l >= groups[group].layers; ++group) {
    l -= groups[group].layers;
  }
  return group;
}

std::string holders_of(const EngineState& state, uint32_t page) {
  std::string text;
  for (const RequestState& r : state.requests) {
    if (r.life != Life::kActive) continue;
    const auto pages = pages_of(r);
    if (std::find(pages.begin(), pages.end(), page) == pages.end()) continue;
    text += fmt::format("{}request {}", text.empty() ? "held by " : ", ", r.request.value);
  }
  if (!text.empty()) return text;
  const auto in = [page](const std::vector<uint32_t>& list) {
    return std::find(list.begin(), list.end(), page) != list.end();
  };
  return in(state.free)     ? "free"
         : in(state.fenced) ? "fenced"
         : in(state.cached) ? "cached"
                            : "lost";
}

// Newest first: writes, and changes of who holds it.
std::vector<PageEvent> events_on(uint32_t page, std::span<const OpRecord> records) {
  std::vector<PageEvent> events;
  for (size_t i = records.size(); i > 0 && events.size() < kEventsMax; --i) {
    const OpRecord& record = records[i - 1];
    for (const PageWrite& write : record.writes) {
      if (write.page != page) continue;
      events.push_back(
          {record.op_index,
           fmt::format("slots {} to {} of the page written by {} ({})", write.first_slot,
                       write.first_slot + write.slots - 1, write.by, record.call)});
    }
    const std::string now = holders_of(record.state, page);
    const std::string before = i > 1 && records[i - 2].state.page_count > 0
                                   ? holders_of(records[i - 2].state, page)
                                   : "free";
    if (now != before) {
      events.push_back(
          {record.op_index, fmt::format("{}, before {} ({})", now, before, record.call)});
    }
  }
  return events;
}

std::string_view twin_purpose(const std::string& name) {
  const TwinRelation* relation = find_twin(name);
  return relation == nullptr ? "" : relation->purpose;
}

std::string mask_shape(const Case& c) {
  std::string text = fmt::format("causal {}", name_of(c.mask.causal));
  for (const CacheGroup& group : cache_groups(c)) {
    text += fmt::format("; {} layers, window {}", group.layers, group.window_left);
  }
  return text;
}

}  // namespace

FindingPlace place_of(const Case& c, const HistoryFinding& f, std::span<const OpRecord> records) {
  FindingPlace m;
  if (f.request) m.request = f.request->value;
  if (f.slot) m.slot = static_cast<int64_t>(*f.slot);
  if (f.layer) m.layer = *f.layer;
  if (f.page) m.page = *f.page;
  for (size_t i = 0; i < c.ops.size() && i <= f.op_index; ++i) {
    const auto* reorder = std::get_if<op::Reorder>(&c.ops[i]);
    if (reorder == nullptr) continue;
    m.permutation = fmt::format("ops[{}]:", i);
    for (size_t b = 0; b < reorder->beams.size(); ++b) {
      m.permutation += fmt::format(" {}<-{}", reorder->beams[b].value, reorder->sources[b].value);
    }
  }
  if (records.empty()) return m;
  const EngineState& state = records.back().state;
  const uint64_t page_bytes = slot_bytes(c.shape) * c.pool.page_slots;
  const size_t group = m.layer < 0 ? 0 : group_of(c, m.layer);
  m.bytes_allocated = page_bytes * c.shape.layers * state.page_count;
  for (const RequestState& r : state.requests) {
    if (r.life == Life::kActive) m.bytes_live += r.length * slot_bytes(c.shape) * c.shape.layers;
    if (int64_t{r.request.value} != m.request) continue;
    m.batch_slot = r.batch_slot;
    m.length = r.length;
    m.position_offset = r.position_offset;
    if (group < r.tables.size()) m.block_table = r.tables[group];
    const uint64_t index = m.slot < 0 ? 0 : static_cast<uint64_t>(m.slot) / c.pool.page_slots;
    if (m.page < 0 && m.slot >= 0 && index < m.block_table.size()) m.page = m.block_table[index];
  }
  if (m.page >= 0 && m.page < int64_t{state.page_count} && !f.draft) {
    m.references = state.references[static_cast<size_t>(m.page)];
    m.on_page = events_on(static_cast<uint32_t>(m.page), records);
  }
  return m;
}

std::string explain_history(const Case& c, const HistoryFinding& f, const FindingPlace& m) {
  const auto known = [](int64_t n) { return n < 0 ? std::string("-") : fmt::to_string(n); };
  std::string out = fmt::format("found by    {}{}\noperation   ops[{}]: {}\nwhat        {}\n",
                                check_name(f.check), f.draft ? " (draft cache)" : "", f.op_index,
                                f.operation, f.message);
  if (!f.twin.empty()) out += fmt::format("twin        {}: {}\n", f.twin, twin_purpose(f.twin));
  out += fmt::format(
      "where       request {}, batch slot {}, slot {}, layer {}, page {} ({} references)\n",
      known(m.request), known(m.batch_slot), known(m.slot), known(m.layer), known(m.page),
      known(m.references));
  out += fmt::format("request     length {}, position offset {}, block table [{}]\n", m.length,
                     m.position_offset, fmt::join(m.block_table, " "));
  out += fmt::format("shape       {} layers, {} query heads on {} KV heads, K {}, V {}; {}\n",
                     c.shape.layers, c.shape.query_heads, c.shape.kv_heads, c.shape.head_dim_k,
                     c.shape.head_dim_v, mask_shape(c));
  out += fmt::format("cache       {} bytes allocated, {} live; pages of {} slots\n",
                     m.bytes_allocated, m.bytes_live, c.pool.page_slots);
  if (!m.permutation.empty()) out += fmt::format("reorder     {}\n", m.permutation);
  for (const PageEvent& event : m.on_page) {
    out += fmt::format("page {:<6} ops[{}]: {}\n", m.page, event.op_index, event.what);
  }
  return out;
}

Json finding_json(const Case& c, const HistoryFinding& f, const FindingPlace& m) {
  Json json = {{"check", check_name(f.check)},
               {"op_index", f.op_index},
               {"operation", f.operation},
               {"message", f.message},
               {"draft", f.draft},
               {"twin", f.twin},
               {"request", m.request},
               {"batch_slot", m.batch_slot},
               {"slot", m.slot},
               {"layer", m.layer},
               {"page", m.page},
               {"references", m.references},
               {"length", m.length},
               {"position_offset", m.position_offset},
               {"block_table", m.block_table},
               {"cache_bytes", {{"allocated", m.bytes_allocated}, {"live", m.bytes_live}}},
               {"mask", mask_shape(c)},
               {"reorder", m.permutation}};
  json["page_events"] = Json::array();
  for (const PageEvent& event : m.on_page) {
    json["page_events"].push_back({{"op_index", event.op_index}, {"what", event.what}});
  }
  return json;
}

Json chrome_trace(const Case& c, std::span<const OpRecord> records) {
  constexpr uint64_t kMicrosecondsPerOp = 1000;
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"args", {{"name", "history " + c.name}}}});
  for (const OpRecord& record : records) {
    const uint64_t when = record.op_index * kMicrosecondsPerOp;
    std::vector<RequestId> tracks = record.requests;
    if (tracks.empty()) tracks.push_back(RequestId(limits::kRequestIdMax + 1));  // of nobody
    for (const RequestId request : tracks) {
      events.push_back({{"name", record.call},
                        {"ph", "X"},
                        {"ts", when},
                        {"dur", kMicrosecondsPerOp},
                        {"pid", 1},
                        {"tid", request.value},
                        {"args", {{"op_index", record.op_index}, {"answer", record.answer}}}});
    }
    const EngineState& s = record.state;
    const auto owned = std::count_if(s.references.begin(), s.references.end(),
                                     [](uint32_t count) { return count > 0; });
    events.push_back({{"name", "pages"},
                      {"ph", "C"},
                      {"ts", when},
                      {"pid", 1},
                      {"args",
                       {{"owned", owned},
                        {"cached", s.cached.size()},
                        {"fenced", s.fenced.size()},
                        {"free", s.free.size()}}}});
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace kv
