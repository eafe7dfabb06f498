#include "harness/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/words.h"

namespace kv {
namespace {

std::string paragraph(const char* css, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("<p class=\"{}\">{}</p>\n", css, html_text(text));
}

std::string details(const char* title, const std::string& text) {
  return fmt::format("<details open><summary>{}</summary><pre>{}</pre></details>\n", title,
                     html_text(text));
}

std::string anchor(size_t index) { return fmt::format("finding-{}", index + 1); }

std::string heading(const Record& r) {
  return fmt::format("{}: {}{}", outcome_name(r.verdict.outcome), r.verdict.failure_class,
                     r.history ? " (with history)" : "");
}

// A tensor of the divergence is stored as this.
DType type_of(const Case& c, const Divergence& d) {
  if (d.tensor.ends_with("lse")) return DType::kF32;
  return d.tensor.ends_with("output") ? c.shape.output_dtype : c.shape.kv_dtype;
}

std::string interval(const Divergence& d) {
  if (!(d.admissible_low < d.admissible_high)) return "";
  return fmt::format("<p>Got <b class=\"bad\">{}</b>, want {}; admissible is [{}, {}].</p>\n",
                     html_text(number_text(d.got)), html_text(number_text(d.want)),
                     html_text(number_text(d.admissible_low)),
                     html_text(number_text(d.admissible_high)));
}

std::string pictures(const HtmlFinding& f) {
  const Case& c = f.record.c;
  const Verdict& v = f.record.verdict;
  std::string out;
  if (v.divergence) {
    const Divergence& d = *v.divergence;
    out += interval(d);
    out += bits_figure({.type = type_of(c, d), .want = d.want_bits, .got = d.got_bits});
    out += grid_figure(error_grid(f.errors, true, d.dimension));
    if (f.errors.queries.size() > 1) out += grid_figure(error_grid(f.errors, false, d.dimension));
  }
  std::optional<Moment> moment;
  if (!c.engine) moment = moment_of(c, v);
  if (moment) {
    out += grid_figure(mask_grid(*moment));
    out += grid_figure(kernel_mask_grid(*moment, f.kernel));
    out += block_table_figure(block_table(*moment));
    out += grid_figure(ownership_grid(*moment));
  }
  for (const Grid& picture : f.pictures) out += grid_figure(picture);
  const int64_t failing = v.divergence ? int64_t{v.divergence->op_index} : -1;
  return out + grid_figure(operations_grid(c, failing));
}

std::string section(const HtmlFinding& f, size_t index) {
  Record told = f.record;
  told.output.clear();
  told.minimized.clear();
  return fmt::format("<section id=\"{}\">\n<h2 class=\"bad\">{}</h2>\n", anchor(index),
                     html_text(heading(told))) +
         paragraph("soft", told.c.name) + paragraph("said", f.explanation) +
         paragraph("message", told.verdict.message) + pictures(f) +
         details("The whole record", record_text(told)) + "</section>\n";
}

std::string contents(std::span<const HtmlFinding> findings) {
  if (findings.size() < 2) return "";
  std::string out = "<ol>\n";
  for (size_t i = 0; i < findings.size(); ++i)
    out += fmt::format("<li><a href=\"#{}\">{}</a> <span class=\"soft\">{}</span></li>\n",
                       anchor(i), html_text(heading(findings[i].record)),
                       html_text(findings[i].record.case_path));
  return out + "</ol>\n";
}

}  // namespace

std::string html_report(const HtmlHead& head, std::span<const HtmlFinding> findings) {
  const size_t all = findings.size();
  findings = findings.first(std::min(all, kHtmlFindingsMax));
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>kverify: {0}</title>\n<style>{1}</style></head>\n<body><main>\n<h1>kverify: "
      "{0}</h1>\n",
      html_text(head.title), kHtmlStyle);
  out += paragraph("soft", fmt::format("kverify {}, {}", head.version, head.plugin));
  out += paragraph(all == 0 ? "good" : "bad",
                   all == 0 ? "No finding."
                            : fmt::format("{} distinct {}.", all, all == 1 ? "fault" : "faults"));
  if (all > findings.size())
    out += paragraph("note", fmt::format("The first {} are drawn.", findings.size()));
  out += contents(findings);
  for (size_t i = 0; i < findings.size(); ++i) out += section(findings[i], i);
  if (!head.summary.empty())
    out += "<section>\n<h2>What ran</h2>\n" +
           fmt::format("<pre>{}</pre>\n</section>\n", html_text(head.summary));
  return out + "</main></body></html>\n";
}

}  // namespace kv
