#include <fmt/format.h>

#include <sstream>

#include "harness/case/names.h"
#include "harness/judge/device_stage.h"
#include "harness/report/record.h"
#include "harness/report/words.h"

namespace kv {
namespace {

/// The words of a paragraph on indented lines of at most 100 columns.
std::string wrapped(const std::string& paragraph) {
  constexpr size_t kColumns = 100;
  std::istringstream words(paragraph);
  std::string out, line = " ";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kColumns && line.size() > 1) {
      out += line + "\n";
      line = " ";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

/// "  label       text", nothing for an empty text.
void line(std::string& out, const char* label, const std::string& text) {
  if (!text.empty()) out += fmt::format("  {:<14}{}\n", label, text);
}

void index(std::string& out, const char* label, int64_t value) {
  if (value >= 0) out += fmt::format("{} {}  ", label, value);
}

std::string place_text(const Case& c, const Divergence& d) {
  std::string out = fmt::format("operation {}", d.op_index);
  if (d.op_index < c.ops.size()) out += fmt::format(" ({})", op_name(c.ops[d.op_index]));
  out += "  ";
  index(out, "request", d.request);
  index(out, "batch slot", d.batch_slot);
  index(out, "layer", d.layer);
  index(out, "head", d.head);
  index(out, "query slot", d.query_slot);
  index(out, "dimension", d.dimension);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string value_text(double value, const std::string& bits) {
  return number_text(value) + (bits.empty() ? "" : " (" + bits + ")");
}

std::string block_table_text(const std::vector<uint32_t>& pages) {
  constexpr size_t kShown = 16;
  std::string out;
  for (size_t i = 0; i < pages.size() && i < kShown; ++i) out += fmt::format("{} ", pages[i]);
  if (pages.size() > kShown) out += fmt::format("... ({} pages)", pages.size());
  return out;
}

std::string execution_text(const Exec& exec) {
  std::string text = fmt::format("schedule seed {}, rounding {}, rounding seed {}",
                                 exec.schedule_seed, name_of(exec.rounding), exec.rounding_seed);
  if (exec.split_slots > 0) text += fmt::format(", splits of {} slots", exec.split_slots);
  if (exec.cascade_slots > 0)
    text += fmt::format(", a cascade of parts of {} slots", exec.cascade_slots);
  return text;
}

void budget(std::string& out, const Divergence& d) {
  if (d.budget.empty()) return;
  line(out, "bound", number_text(d.bound) + "  of which");
  for (const BudgetLine& part : d.budget) {
    if (part.value == 0) continue;
    out += fmt::format("  {:<14}  {:<26}{:>12}  {:>5.1f} %\n", "", part.name,
                       fmt::format("{:.3g}", part.value), 100 * part.share);
  }
}

void divergence(std::string& out, const Case& c, const Divergence& d) {
  line(out, "where", place_text(c, d));
  line(out, "tensor", d.tensor);
  if (!d.want_bits.empty() || !d.got_bits.empty()) {
    line(out, "want", value_text(d.want, d.want_bits));
    line(out, "got", value_text(d.got, d.got_bits));
  }
  if (d.admissible_low < d.admissible_high)
    line(out, "admissible",
         "[" + number_text(d.admissible_low) + ", " + number_text(d.admissible_high) + "]");
  line(out, "assuming", d.profile);
  budget(out, d);
  if (d.request < 0) return;
  line(out, "request",
       fmt::format("{} slots in the cache, position offset {}, cache {} bytes "
                   "allocated, {} live",
                   d.kv_length, d.position_offset, d.cache_bytes_allocated, d.cache_bytes_live));
  line(out, "block table", block_table_text(d.block_table));
  line(out, "slot digest", d.slot_digest);
}

std::string source_text(const DeviceFinding& f) {
  std::string out = f.source_file.empty() ? "" : fmt::format("{}:{}", f.source_file, f.source_line);
  if (!f.inlined_at_file.empty())
    out += fmt::format(", inlined at {}:{}", f.inlined_at_file, f.inlined_at_line);
  if (f.ptx_line > 0) out += fmt::format("{}PTX line {}", out.empty() ? "" : ", ", f.ptx_line);
  return out;
}

void finding(std::string& out, const DeviceFinding& f) {
  line(out, "device", fmt::format("{}: {}", finding_kind_name(f.kind), f.message));
  if (!f.kernel.empty())
    line(out, "  kernel",
         fmt::format("{}, launch {}, block ({},{},{}), thread ({},{},{})", f.kernel, f.launch,
                     f.block[0], f.block[1], f.block[2], f.thread[0], f.thread[1], f.thread[2]));
  line(out, "  instruction", f.instruction);
  line(out, "  source", source_text(f));
  if (f.repeats > 0) line(out, "  repeats", fmt::format("{} more at this instruction", f.repeats));
}

std::string shape_text(const Case& c) {
  const Shape& s = c.shape;
  std::string out = fmt::format(
      "{} layers, {} query heads, {} KV heads, head dimension {}/{}, {} query, "
      "{} KV, {} output, pages of {} slots",
      s.layers, s.query_heads, s.kv_heads, s.head_dim_k, s.head_dim_v, dtype_name(s.query_dtype),
      dtype_name(s.kv_dtype), dtype_name(s.output_dtype), c.pool.page_slots);
  if (s.softcap != 0) out += fmt::format(", softcap {}", s.softcap);
  return out;
}

std::string mask_text(const Case& c) {
  std::string out = fmt::format("causal {}", name_of(c.mask.causal));
  if (c.mask.window_left >= 0) out += fmt::format(", window left {}", c.mask.window_left);
  if (c.mask.window_right >= 0) out += fmt::format(", window right {}", c.mask.window_right);
  return out;
}

}  // namespace

std::string record_text(const Record& r) {
  constexpr size_t kFindingsShown = 4;
  const Verdict& v = r.verdict;
  std::string out =
      fmt::format("{}{}: {} (stage {})\n", outcome_name(v.outcome),
                  r.history ? " with history" : "", v.failure_class, stage_name(v.stage));
  out += wrapped(v.message);
  if (v.divergence) divergence(out, r.c, *v.divergence);
  for (size_t i = 0; i < v.findings.size() && i < kFindingsShown; ++i) finding(out, v.findings[i]);
  if (v.findings.size() > kFindingsShown)
    line(out, "device", fmt::format("{} more findings", v.findings.size() - kFindingsShown));
  line(out, "variant", v.variant);
  line(out, "shape", shape_text(r.c));
  line(out, "mask", mask_text(r.c));
  line(out, "execution", execution_text(r.c.exec));
  if (r.history)
    line(out, "history",
         fmt::format("only after {} other cases in the same process", r.c.exec.preceding.size()));
  if (!r.story.empty()) out += "\n" + r.story + "\n";
  line(out, "printed", r.output);
  line(out, "minimized", r.minimized);
  line(out, "replay", r.replay);
  return out;
}

}  // namespace kv
