#include "harness/case/json_tree.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_lines.h"

namespace kv {
namespace {

constexpr uint64_t kMillisecondsMax = uint64_t{1} << 43;  // 278 years

// Member `key` as an unsigned integer from `min` to `max`.
Result<uint64_t> integer(const Json& object, const char* key, uint64_t min, uint64_t max,
                         const TraceLines& lines) {
  const std::string expected = fmt::format("an integer from {} to {}", min, max);
  const auto member = object.find(key);
  if (member == object.end()) return lines.error(key, expected, "nothing");
  if (!member->is_number_unsigned()) return lines.error(key, expected, preview(*member));
  const auto value = member->get<uint64_t>();
  if (value < min || value > max) return lines.error(key, expected, preview(*member));
  return value;
}

Result<std::vector<uint64_t>> block_ids(const Json& object, uint64_t prompt_tokens,
                                        const TraceLines& lines) {
  const uint64_t want = (prompt_tokens + kTraceBlockTokens - 1) / kTraceBlockTokens;
  const std::string expected = fmt::format("{} ids, one for each 512-token block", want);
  const auto member = object.find("hash_ids");
  if (member == object.end()) return lines.error("hash_ids", expected, "nothing");
  if (!member->is_array() || member->size() != want) {
    return lines.error("hash_ids", expected, preview(*member));
  }
  std::vector<uint64_t> ids;
  ids.reserve(want);
  for (const Json& id : *member) {
    if (!id.is_number_unsigned()) return lines.error("hash_ids", "unsigned integers", preview(id));
    ids.push_back(id.get<uint64_t>());
  }
  return ids;
}

// The parser knows one line only, and calls it the first.
std::string without_line(std::string message) {
  constexpr std::string_view kLine = " at line 1, column";
  const size_t at = message.find(kLine);
  if (at != std::string::npos) message.replace(at, kLine.size(), " at column");
  return message;
}

}  // namespace

Result<std::vector<TraceRequest>> read_mooncake(std::string_view text, std::string_view name) {
  TraceLines lines(text, name);
  std::vector<TraceRequest> requests;
  std::optional<uint64_t> first;
  while (const auto line = lines.next()) {
    if (line->size() > limits::kTraceLineBytesMax) {
      return lines.error("request", "at most 1 MiB", line->substr(0, 60));
    }
    const auto tree = parse_json(*line);
    if (!tree.ok()) {
      return lines.error(without_line(tree.error().message), "one JSON object",
                         line->substr(0, 60));
    }
    if (!tree->is_object() || tree->size() != 4) {
      return lines.error("request", "timestamp, input_length, output_length and hash_ids",
                         preview(*tree));
    }
    KV_ASSIGN_OR_RETURN(const uint64_t when,
                        integer(*tree, "timestamp", 0, kMillisecondsMax, lines));
    KV_ASSIGN_OR_RETURN(const uint64_t prompt,
                        integer(*tree, "input_length", 1, limits::kTraceTokensMax, lines));
    KV_ASSIGN_OR_RETURN(const uint64_t output,
                        integer(*tree, "output_length", 0, limits::kTraceTokensMax, lines));
    KV_ASSIGN_OR_RETURN(auto blocks, block_ids(*tree, prompt, lines));
    if (!first) first = when;
    if (when < *first) return lines.error("timestamp", "not before the first", *line);
    if (requests.size() == limits::kTraceRequestsMax) {
      return lines.error("requests", "at most 1048576", "more");
    }
    requests.push_back({(when - *first) * 1'000'000, prompt, output, std::move(blocks)});
  }
  if (requests.empty()) return lines.error("trace", "at least one request", "none");
  return requests;
}

}  // namespace kv
