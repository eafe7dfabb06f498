// Calls that break the contract: each has to be refused.
#include <algorithm>

#include "harness/case/limits.h"
#include "harness/history/model.h"

namespace kv {
namespace {

using Kind = op::Hostile::Kind;

constexpr RequestId kUnusedId{limits::kRequestIdMax};
constexpr uint64_t kNobodysHandle = 0xdeadbeef00000001;

}  // namespace

// A lawful row of a request, or what comes nearest to it.
call::StepRow Model::hostile_row(RequestId request, uint32_t tokens) {
  const ModelRequest* r = find(request);
  call::StepRow row{.request = request,
                    .handle = kNobodysHandle,
                    .append = tokens,
                    .dtype = case_.shape.kv_dtype};
  if (r != nullptr) {
    row.handle = r->handle;
    row.length = r->slots.size();
  } else if (old_handles_.contains(request)) {
    row.handle = old_handles_[request];
  }
  row.tokens.assign(tokens, 1);
  row.histories.assign(tokens, 1);
  row.previous.assign(tokens, 0);
  return row;
}

Model::Plan Model::hostile_restore(const op::Hostile& hostile) {
  const auto found = saved_.find(hostile.request);
  if (found == saved_.end() || found->second.bytes.empty()) return std::nullopt;
  const ModelRequest& content = found->second.content;
  call::Restore call{.admission = {.request = kUnusedId,
                                   .owner = content.owner,
                                   .side_input = content.side_input,
                                   .slots_max = content.slots_max,
                                   .position_offset = content.position_offset},
                     .bytes = found->second.bytes};
  if (hostile.kind == Kind::kCorruptRestore) {
    call.bytes[call.bytes.size() / 2] ^= std::byte{1};
  } else {
    call.bytes.pop_back();
  }
  return Planned{
      .call = std::move(call), .expect = Expect::kRefusal, .why = "the saved bytes are damaged"};
}

Model::Plan Model::plan_op(const op::Hostile& hostile) {
  const auto refused = [](Call call, const char* why) {
    return Planned{.call = std::move(call), .expect = Expect::kRefusal, .why = why};
  };
  const auto refused_row = [&](call::StepRow row, const char* why) {
    return refused(call::Step{.rows = {std::move(row)}}, why);
  };
  const ModelRequest* r = find(hostile.request);
  call::StepRow row = hostile_row(hostile.request, 1);
  switch (hostile.kind) {
    case Kind::kLengthMinusOne:
      --row.length;
      return refused_row(std::move(row), "the row appends at another slot than the length");
    case Kind::kLengthPlusOne:
      ++row.length;
      return refused_row(std::move(row), "the row appends at another slot than the length");
    case Kind::kReleasedHandle:
      row.handle =
          old_handles_.contains(hostile.request) ? old_handles_[hostile.request] : kNobodysHandle;
      return refused_row(std::move(row), "the handle is no longer valid");
    case Kind::kForeignHandle:
      row.handle = kNobodysHandle;
      for (const auto& [id, other] : requests_) {
        if (id != hostile.request) row.handle = other.handle;
      }
      return refused_row(std::move(row), "the handle is another request's");
    case Kind::kWrongDtype:
      row.dtype = case_.shape.kv_dtype == DType::kF16 ? DType::kBf16 : DType::kF16;
      return refused_row(std::move(row), "the dtype is not the pool's");
    case Kind::kPastLimit: {
      const uint64_t left = r == nullptr ? 0 : r->slots_max - r->slots.size();
      const auto tokens = static_cast<uint32_t>(std::min<uint64_t>(left, limits::kRowTokensMax));
      return refused_row(hostile_row(hostile.request, tokens + 1), "past the request's limit");
    }
    case Kind::kCorruptRestore:
    case Kind::kTruncatedRestore:
      return hostile_restore(hostile);
    case Kind::kDuplicateRequest:
      if (r == nullptr) return std::nullopt;
      return refused(call::Admit{.request = r->request, .owner = r->owner, .slots_max = 1},
                     "the request exists already");
    case Kind::kStepInFlightTwice:
      return refused(call::Complete{launched_ + 1}, "the step is not in flight");
  }
  return std::nullopt;
}

}  // namespace kv
