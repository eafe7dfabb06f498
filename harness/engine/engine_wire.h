// Purpose: what a judge in the parent and an engine in a worker say to each other, as bytes.
// Contract: encode and decode are inverse for what a sane worker sends. decode trusts nothing: a
// payload that is too short or too long, or names an enumerator that does not exist, gives nothing;
// no allocation exceeds a small multiple of the payload.
// Example: worker.submit(FrameType::kEngine, encode(EngineRequest(request::Perform{call})));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/engine/engine.h"

namespace kv {

namespace request {

/// A new engine for a case, in its canonical text; the old one is destroyed.
struct Create {
  std::string case_text;
};
/// Is answered with the state after the call.
struct Perform {
  Call call;
};
struct Read {
  CacheKind cache = CacheKind::kTarget;
  std::vector<SlotPlace> places;
};
struct TakeOutputs {
  uint64_t step = 0;
};

}  // namespace request

using EngineRequest =
    std::variant<request::Create, request::Perform, request::Read, request::TakeOutputs>;

struct EngineReply {
  std::optional<Error> error;  // of create, or a snapshot that cannot be read
  Answer answer;
  std::optional<EngineState> target, draft;
  std::vector<SlotBytes> slots;
  StepOutputs outputs;
  uint8_t shift_turns = 0;  // of create; not 0: it does
  DeviceReport device;      // since the last reply
};

/// Numbered tokens of pages (page_tokens.h) cross once: what one side has told, the other heard,
/// in all replies since the engine was created.
struct PagesTold {
  uint64_t last_number = 0;
};
struct PagesHeard {
  LastRound<PageTokens> pages;  // by number, of the last reply with a state: of it alone they are
                                // named again
};

std::vector<std::byte> encode(const EngineRequest& request);
std::vector<std::byte> encode(const EngineReply& reply, PagesTold& told);
std::optional<EngineRequest> decode_engine_request(std::span<const std::byte> payload);
std::optional<EngineReply> decode_engine_reply(std::span<const std::byte> payload,
                                               PagesHeard& heard);

}  // namespace kv
