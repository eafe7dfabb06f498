#include "harness/engine/engine_call.h"

#include <fmt/format.h>

namespace kv {
namespace {

std::string in_words(const call::Admit& a) {
  return fmt::format("admit request {} with {} tokens", a.request.value, a.tokens.size());
}
std::string in_words(const call::Step& s) {
  std::string rows;
  for (const call::StepRow& row : s.rows) {
    rows += fmt::format("{}{}+{} at {}", rows.empty() ? "" : ", ", row.request.value, row.append,
                        row.length);
    if (row.speculative > 0) rows += fmt::format(" ({} speculative)", row.speculative);
  }
  return fmt::format("{}step of requests {}", s.draft ? "draft " : "", rows);
}
std::string in_words(const call::Complete& c) { return fmt::format("complete step {}", c.step); }
std::string in_words(const call::Fork& f) {
  return fmt::format("fork request {} into {}", f.parent.value, f.child.value);
}
std::string in_words(const call::Reorder& r) {
  std::string out = "reorder";
  for (size_t i = 0; i < r.beams.size() && i < r.sources.size(); ++i) {
    out += fmt::format(" {}<-{}", r.beams[i].value, r.sources[i].value);
  }
  return out;
}
std::string in_words(const call::Truncate& t) {
  return fmt::format("truncate request {} to {}", t.request.value, t.length);
}
std::string in_words(const call::Shift& s) {
  return fmt::format("drop slots {} to {} of request {}", s.begin, s.end, s.request.value);
}
std::string in_words(const call::Cancel& c) {
  return fmt::format("cancel request {}", c.request.value);
}
std::string in_words(const call::Finish& f) {
  return fmt::format("finish request {}", f.request.value);
}
std::string in_words(const call::Preempt& p) {
  return fmt::format("preempt request {} to {}", p.request.value, p.swap ? "swap" : "recompute");
}
std::string in_words(const call::Resume& r) {
  return fmt::format("resume request {}", r.request.value);
}
std::string in_words(const call::Evict& e) { return fmt::format("evict {} pages", e.pages); }
std::string in_words(const call::Defrag&) { return "defragment"; }
std::string in_words(const call::Save& s) {
  return fmt::format("save request {}", s.request.value);
}
std::string in_words(const call::Restore& r) {
  return fmt::format("restore request {} from {} bytes", r.admission.request.value, r.bytes.size());
}
std::string in_words(const call::FailAllocation& f) {
  return fmt::format("let allocation {} fail", f.nth);
}

std::vector<RequestId> named(const call::Admit& a) { return {a.request}; }
std::vector<RequestId> named(const call::Restore& r) { return {r.admission.request}; }
std::vector<RequestId> named(const call::Fork& f) { return {f.parent, f.child}; }
std::vector<RequestId> named(const call::Reorder& r) { return r.beams; }
std::vector<RequestId> named(const call::Step& s) {
  std::vector<RequestId> all;
  for (const call::StepRow& row : s.rows) all.push_back(row.request);
  return all;
}
std::vector<RequestId> named(const auto& other) {
  if constexpr (requires { other.request; }) return {other.request};
  return {};
}

}  // namespace

std::vector<RequestId> requests_of(const Call& call) {
  return std::visit([](const auto& c) { return named(c); }, call);
}

std::string_view status_name(CallStatus status) {
  switch (status) {
    case CallStatus::kOk:
      return "KV_OK";
    case CallStatus::kRefused:
      return "KV_REFUSED";
    case CallStatus::kUnsupported:
      return "KV_UNSUPPORTED";
    case CallStatus::kFailed:
      return "KV_FAILED";
    case CallStatus::kExhausted:
      return "KV_EXHAUSTED";
  }
  return "?";
}

std::string describe(const Call& call) {
  return std::visit([](const auto& c) { return in_words(c); }, call);
}

}  // namespace kv
