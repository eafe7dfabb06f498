#include <array>
#include <charconv>
#include <chrono>

#include "harness/trace/trace.h"
#include "harness/trace/trace_lines.h"

namespace kv {
namespace {

constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr std::string_view kTimestampForm = "YYYY-MM-DD hh:mm:ss.fffffff";

std::optional<uint64_t> digits(std::string_view text, uint64_t max) {
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text[0] == '+' || status != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value <= max ? std::optional(value) : std::nullopt;
}

// Nanoseconds since 1970, of a timestamp with up to nine digits of fraction.
std::optional<uint64_t> timestamp_ns(std::string_view text) {
  constexpr std::string_view kPunctuation = "0000-00-00 00:00:00";
  if (text.size() < kPunctuation.size() || text.size() > kPunctuation.size() + 10) return {};
  for (size_t i = 0; i < kPunctuation.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kPunctuation[i] == '0' ? !is_digit : text[i] != kPunctuation[i]) return {};
  }
  const auto field = [&](size_t begin, size_t size) {
    return static_cast<unsigned>(*digits(text.substr(begin, size), 9999));
  };
  using namespace std::chrono;
  const year_month_day date{year(static_cast<int>(field(0, 4))), month(field(5, 2)),
                            day(field(8, 2))};
  if (!date.ok() || date.year() < year(1970)) return {};
  if (field(11, 2) > 23 || field(14, 2) > 59 || field(17, 2) > 60) return {};
  uint64_t fraction = 0;
  if (const std::string_view tail = text.substr(kPunctuation.size()); !tail.empty()) {
    const auto value = digits(tail.substr(1), 999'999'999);
    if (tail[0] != '.' || !value) return {};
    fraction = *value;
    for (size_t i = tail.size() - 1; i < 9; ++i) fraction *= 10;
  }
  const auto days = static_cast<uint64_t>(sys_days(date).time_since_epoch().count());
  const uint64_t seconds = days * 86400 + field(11, 2) * 3600u + field(14, 2) * 60u + field(17, 2);
  return seconds * 1'000'000'000 + fraction;
}

}  // namespace

Result<std::vector<TraceRequest>> read_azure(std::string_view text, std::string_view name) {
  TraceLines lines(text, name);
  const auto header = lines.next();
  if (header != kHeader) return lines.error("header", kHeader, header.value_or(""));
  std::vector<TraceRequest> requests;
  std::optional<uint64_t> first;
  while (const auto line = lines.next()) {
    const size_t a = line->find(','), b = line->find(',', a == line->npos ? a : a + 1);
    if (b == line->npos) return lines.error("request", kHeader, *line);
    const auto when = timestamp_ns(line->substr(0, a));
    if (!when) return lines.error("TIMESTAMP", kTimestampForm, line->substr(0, a));
    const std::string_view context = line->substr(a + 1, b - a - 1);
    const auto prompt = digits(context, limits::kTraceTokensMax);
    if (!prompt || *prompt == 0) {
      return lines.error("ContextTokens", "an integer from 1 to 4194304", context);
    }
    const auto output = digits(line->substr(b + 1), limits::kTraceTokensMax);
    if (!output) {
      return lines.error("GeneratedTokens", "an integer from 0 to 4194304", line->substr(b + 1));
    }
    if (!first) first = *when;
    if (*when < *first) return lines.error("TIMESTAMP", "not before the first", line->substr(0, a));
    if (requests.size() == limits::kTraceRequestsMax) {
      return lines.error("requests", "at most 1048576", "more");
    }
    requests.push_back({*when - *first, *prompt, *output, {}});
  }
  if (requests.empty()) return lines.error("trace", "at least one request", "none");
  return requests;
}

}  // namespace kv
