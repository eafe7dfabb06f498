#include "harness/report/ci_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/judge/fingerprint.h"

namespace kv {
namespace {

using Json = nlohmann::ordered_json;

struct Place {
  std::string file;
  uint32_t line = 0;
};

// The line that a person wrote: where the instruction was inlined to, if it was.
Place place_of(const Record& record) {
  if (const DeviceFinding* f = deciding_finding(record.verdict)) {
    if (!f->inlined_at_file.empty()) return {f->inlined_at_file, f->inlined_at_line};
    if (!f->source_file.empty()) return {f->source_file, f->source_line};
  }
  return {record.case_path, 1};
}

std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 has no other control characters, not even escaped.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

// Workflow commands end with the line; properties end at commas and colons, too.
std::string command_text(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool escaped = c == '%' || c == '\r' || c == '\n' || (property && (c == ',' || c == ':'));
    out += escaped ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

/// Why a run says nothing, or less than it should; "" for one that passed or failed.
std::string why_no_result(ExitCode code) {
  switch (code) {
    case ExitCode::kVacuous:
      return "too little ran to say anything";
    case ExitCode::kTimeLimit:
      return "the time limit was met";
    case ExitCode::kUnsupported:
      return "nothing ran but what the plugin does not offer";
    default:
      return "";
  }
}

std::string fault_of(const Record& r) { return fingerprint_of(r.c, r.verdict).text(); }

}  // namespace

std::string junit_xml(const RunSummary& summary, std::span<const Record> records) {
  const ExitCode code = summary.exit_code();
  const std::string why = why_no_result(code);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"kverify\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\">\n"
      "  <properties>\n    <property name=\"cases\" value=\"{}\"/>\n"
      "    <property name=\"passed\" value=\"{}\"/>\n"
      "    <property name=\"unsupported\" value=\"{}\"/>\n  </properties>\n",
      records.size() + 1, records.size(), why.empty() ? 0 : 1, summary.cases,
      summary.count(Outcome::kPass), summary.count(Outcome::kUnsupported));
  out += "  <testcase classname=\"kverify\" name=\"cases without a finding\"";
  out += why.empty()
             ? "/>\n"
             : fmt::format(">\n    <error type=\"exit {}\" message=\"{}\"/>\n  </testcase>\n",
                           static_cast<int>(code), why);
  for (const Record& r : records) {
    out += fmt::format(
        "  <testcase classname=\"kverify\" name=\"{}\">\n"
        "    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>\n",
        xml(fault_of(r)), xml(r.verdict.failure_class), xml(r.verdict.message),
        xml(record_text(r)));
  }
  return out + "</testsuite>\n";
}

Json sarif_json(std::span<const Record> records, const std::string& version) {
  Json results = Json::array(), rules = Json::array();
  std::vector<std::string> known;
  for (const Record& r : records) {
    const std::string& rule = r.verdict.failure_class;
    if (std::find(known.begin(), known.end(), rule) == known.end()) {
      known.push_back(rule);
      rules.push_back({{"id", rule}});
    }
    const Place at = place_of(r);
    Json result = {{"ruleId", rule},
                   {"level", "error"},
                   {"message", {{"text", r.verdict.message}}},
                   {"partialFingerprints", {{"kverify/v1", fault_of(r)}}},
                   {"properties", {{"case", r.case_path}, {"replay", r.replay}}}};
    if (!at.file.empty()) {
      result["locations"] = Json::array({{{"physicalLocation",
                                           {{"artifactLocation", {{"uri", at.file}}},
                                            {"region", {{"startLine", std::max(at.line, 1u)}}}}}}});
    }
    results.push_back(std::move(result));
  }
  Json run = {{"tool", {{"driver", {{"name", "kverify"}, {"version", version}, {"rules", rules}}}}},
              {"results", results}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({run})}};
}

std::string github_annotation(const Record& r) {
  const Place at = place_of(r);
  std::string where;
  if (!at.file.empty())
    where = fmt::format("file={},line={},", command_text(at.file, true), std::max(at.line, 1u));
  return fmt::format("::error {}title={}::{}\n", where,
                     command_text("kverify " + r.verdict.failure_class, true),
                     command_text(r.verdict.message, false));
}

}  // namespace kv
