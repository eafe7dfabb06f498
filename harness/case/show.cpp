#include "harness/case/show.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/case/mask_bits.h"
#include "harness/case/names.h"
#include "harness/case/timeline.h"

namespace kv {
namespace {

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string settings(const Case& c) {
  const Shape& s = c.shape;
  std::string out = fmt::format("case {}\n", c.name.empty() ? "(unnamed)" : c.name);
  if (!c.comment.empty()) out += fmt::format("  {}\n", c.comment);
  out += fmt::format("shape  {}, {} over {}, dimension {} (keys) and {} (values), scale {}\n",
                     plural(s.layers, "layer"), plural(s.query_heads, "query head"),
                     plural(s.kv_heads, "kv head"), s.head_dim_k, s.head_dim_v, s.scale);
  if (s.value_in_key) out += "latent V is the first dimensions of K, in K's memory\n";
  if (s.softcap != 0) out += fmt::format("softcap {}\n", s.softcap);
  if (s.alibi) out += "alibi  slopes for each query head\n";
  if (s.sinks) out += "sinks  a logit for each query head\n";
  out += fmt::format(
      "types  query {}, cache {}{}, output {}\n", name_of(s.query_dtype), name_of(s.kv_dtype),
      s.kv_scale == KvScale::kNone ? ""
                                   : fmt::format(" with a scale for each {}", name_of(s.kv_scale)),
      name_of(s.output_dtype));
  if (s.rope.pairing != RopePairing::kNone)
    out += fmt::format("RoPE   {}, {} of {} dimensions, theta {}\n", name_of(s.rope.pairing),
                       s.rope.dims, s.head_dim_k, s.rope.theta);
  out += fmt::format("mask   causal {}", name_of(c.mask.causal));
  if (c.mask.window_left >= 0) out += fmt::format(", window {} to the left", c.mask.window_left);
  if (c.mask.window_right >= 0) out += fmt::format(", window {} to the right", c.mask.window_right);
  out += fmt::format("\npool   {} of {}, order {}, layout {}, poison {}\n",
                     plural(c.pool.page_count, "page"), plural(c.pool.page_slots, "slot"),
                     name_of(c.pool.order), name_of(c.pool.layout), name_of(c.pool.poison));
  out += fmt::format("data   {}, seed {}\n", name_of(c.data.design), c.data.seed);
  out += fmt::format("exec   schedule seed {}, rounding {} (seed {})", c.exec.schedule_seed,
                     name_of(c.exec.rounding), c.exec.rounding_seed);
  if (!c.exec.variant.empty()) out += fmt::format(", variant {}", c.exec.variant);
  if (c.exec.cascade_slots > 0) {
    out += fmt::format(", in parts of {} slots, merged", c.exec.cascade_slots);
  }
  if (c.exec.split_slots > 0) out += fmt::format(", splits of {} slots", c.exec.split_slots);
  if (c.exec.graph) out += ", from a graph";
  if (c.engine) {
    const EngineLevel& e = *c.engine;
    out += fmt::format(
        "\nengine {} and {} requests at once, context {}, {} in flight, {} host pages{}",
        plural(e.batch_slots, "batch slot"), e.request_max, e.context_limit,
        plural(e.async_depth, "step"), e.host_page_count, e.prefix_cache ? ", prefix cache" : "");
    for (const CacheGroup& group : e.groups) {
      out += fmt::format("\n       group of {}, window {}", plural(group.layers, "layer"),
                         group.window_left);
    }
    if (e.draft_layers > 0)
      out += fmt::format("\n       draft model of {} on {}", plural(e.draft_layers, "layer"),
                         plural(e.draft_page_count, "page"));
  }
  if (c.exec.repeat > 1) out += fmt::format(", {} times", c.exec.repeat);
  return out + "\n";
}

// ---------------------------------------------------------------- operations in words

std::string in_words(const op::Admit& a) {
  std::string out = fmt::format("admit request {}: prompt of {}", a.request.value,
                                plural(a.prompt_tokens, "token"));
  if (a.prefix_of) {
    out += fmt::format(", the first {} as request {}", a.prefix_tokens, a.prefix_of->value);
  }
  if (a.side_input != 0) out += fmt::format(", side input {}", a.side_input);
  if (a.position_offset != 0) out += fmt::format(", positions from {}", a.position_offset);
  return out;
}
std::string in_words(const op::Append& a) {
  return fmt::format("append {} to request {}", plural(a.tokens, "token"), a.request.value);
}
std::string in_words(const op::Step& s) { return "step of " + plural(s.rows.size(), "row"); }
std::string in_words(const op::Fork& f) {
  return fmt::format("fork request {} into {}", f.parent.value, f.child.value);
}
std::string in_words(const op::Reorder& r) {
  std::string out = "reorder";
  for (size_t i = 0; i < r.beams.size() && i < r.sources.size(); ++i) {
    out += fmt::format(" {}<-{}", r.beams[i].value, r.sources[i].value);
  }
  return out;
}
std::string in_words(const op::Truncate& t) {
  return fmt::format("truncate request {} to {}", t.request.value, plural(t.length, "slot"));
}
std::string in_words(const op::Shift& s) {
  return fmt::format("drop slots {} to {} of request {}", s.begin, s.end, s.request.value);
}
std::string in_words(const op::Preempt& p) {
  return fmt::format("preempt request {}{}", p.request.value, p.swap ? " by swapping" : "");
}
std::string in_words(const op::Evict& e) { return "evict " + plural(e.pages, "page"); }
std::string in_words(const op::Defrag&) { return "defragment"; }
std::string in_words(const op::Complete& c) { return fmt::format("step {} completes", c.step); }
std::string in_words(const op::FailAllocation& f) {
  return fmt::format("allocation {} from here fails", f.nth);
}
std::string in_words(const op::Hostile& h) {
  return fmt::format("hostile call {} for request {}", name_of(h.kind), h.request.value);
}

std::string in_words(const op::Restore& r) {
  return fmt::format("restore request {} from what request {} saved", r.request.value,
                     r.saved.value);
}

template <class RequestOnly>  // cancel, finish, resume, save
std::string in_words(const RequestOnly& o) {
  return fmt::format("{} request {}", op_name(Op(o)), o.request.value);
}

std::string operation_in_words(const Op& op) {
  return std::visit([](const auto& o) { return in_words(o); }, op);
}

// ---------------------------------------------------------------- steps

std::string block_table(const Sequence& sequence) {
  std::string out;
  for (size_t i = 0; i < sequence.pages.size() && i < kShownPagesMax; ++i) {
    out += fmt::format(" {}", sequence.pages[i].value);
  }
  if (sequence.pages.size() > kShownPagesMax) {
    out += fmt::format(" ... ({} pages)", sequence.pages.size());
  }
  return out.empty() ? " none" : out;
}

std::string query_name(const Sequence& sequence, int64_t slot) {
  if (slot < 0) return "no slot";
  return sequence.slots[static_cast<size_t>(slot)].pad ? "PAD" : "";
}

std::string matrix(const Case& c, const Sequence& sequence, const PlannedRow& row) {
  std::string out;
  const uint32_t columns = std::min(row.kv_length, kShownColumnsMax);
  const uint32_t first = row.kv_length - columns;  // the last slots are the interesting ones
  if (first > 0) out += fmt::format("      (slots 0 to {} are not shown)\n", first - 1);
  if (mask_heads(c) > 1) out += "      (of head 0; the mask differs from head to head)\n";
  const uint32_t shown = std::min(row.queries, kShownQueriesMax);
  for (uint32_t q = row.queries - shown; q < row.queries; ++q) {
    const std::vector<uint8_t> visible = visible_slots(c, sequence, row, {q});
    std::string bits;
    for (uint32_t slot = first; slot < row.kv_length; ++slot) bits += visible[slot] ? '1' : '0';
    const auto seen = std::count(visible.begin(), visible.end(), 1);
    out += fmt::format("      query {:>4} at slot {:>4}: {}  sees {}", q, query_slot(row, q), bits,
                       seen);
    const std::string name = query_name(sequence, query_slot(row, q));
    out += name.empty() ? "\n" : fmt::format(", {}\n", name);
  }
  if (shown < row.queries) {
    out += fmt::format("      (queries 0 to {} are not shown)\n", row.queries - shown - 1);
  }
  return out;
}

std::string step_rows(const Case& c, const op::Step& step, const PlannedStep& plan,
                      const Timeline& timeline) {
  std::string out;
  for (size_t r = 0; r < step.rows.size(); ++r) {
    const op::StepRow& row = step.rows[r];
    const PlannedRow& planned = plan.rows[r];
    const Sequence& sequence = timeline.sequence(row.request);
    out += fmt::format("    row {}: request {}, append {}", r, row.request.value,
                       plural(row.append, "token"));
    if (row.pad_left > 0) out += fmt::format(", {} PAD before", row.pad_left);
    if (row.pad_right > 0) out += fmt::format(", {} PAD after", row.pad_right);
    out += fmt::format("; {} over {}; pages{}\n", plural(row.queries, "query row"),
                       plural(planned.kv_length, "slot"), block_table(sequence));
    out += matrix(c, sequence, planned);
  }
  return out;
}

}  // namespace

std::string show_case(const Case& c) {
  std::string out = settings(c);
  Result<Timeline> timeline = Timeline::create(c);
  if (!timeline.ok()) out += fmt::format("not planned: {}\n", timeline.error().message);
  const size_t shown = std::min<size_t>(c.ops.size(), kShownOperationsMax);
  for (size_t i = 0; i < shown; ++i) {
    out += fmt::format("{:>4}  {}\n", i, operation_in_words(c.ops[i]));
    if (!timeline.ok()) continue;
    const PlannedStep plan = timeline->apply(static_cast<uint32_t>(i));
    if (const auto* step = std::get_if<op::Step>(&c.ops[i])) {
      out += step_rows(c, *step, plan, *timeline);
    }
  }
  if (shown < c.ops.size()) {
    out += fmt::format("      ({} more operations are not shown)\n", c.ops.size() - shown);
  }
  return out;
}

}  // namespace kv
