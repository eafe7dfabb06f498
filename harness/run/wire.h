// Purpose: what a worker and its parent say to each other, as bytes.
// Contract: encode_* and decode_* are inverse for what a sane worker sends. decode_* trusts
// nothing: a payload that is too short, too long, or names an enumerator that does not exist gives
// nothing; all text is printable and bounded; no allocation exceeds the payload. Whether sizes and
// indices fit the case is the judge's business.
// Example: write_frame(socket, FrameType::kEnd, encode_end(7, end));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/case/offers.h"
#include "harness/core/result.h"
#include "harness/run/observation.h"

namespace kv {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

/// kHello: what a worker says first, once.
struct Hello {
  std::optional<Error> error;  // the plugin could not be loaded
  PluginFacts plugin;
  bool kernel_level = false, engine_level = false;
  OfferSet offered = OfferSet::all();  // of the kernel level
  std::vector<Dispatch> dispatch = {};
  std::string runtime_path;
};
Bytes encode_hello(const Hello& hello);
std::optional<Hello> decode_hello(ByteSpan payload);

/// kRun: the file that holds the case, and the case itself (encode_case) unless it is too long to
/// be sent while the worker writes (kInlineBytesMax). Answers carry the same number.
inline constexpr size_t kInlineBytesMax = 16 << 10;
struct RunRequest {
  uint64_t number = 0;
  std::string case_path;
  Bytes case_bytes;
};
Bytes encode_request(const RunRequest& request);
std::optional<RunRequest> decode_request(ByteSpan payload);

/// kOperation and kEnd.
struct Numbered {
  uint64_t number = 0;
  std::variant<OpObservation, RunEnd> what;
};
Bytes encode_operation(uint64_t number, const OpObservation& observation);
Bytes encode_end(uint64_t number, const RunEnd& end);
std::optional<Numbered> decode_operation(ByteSpan payload);
/// The same; images of pages are parts of the payload, not copies.
std::optional<Numbered> decode_operation_in(SharedBytes::Whole payload);
std::optional<Numbered> decode_end(ByteSpan payload);

}  // namespace kv
