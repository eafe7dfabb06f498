// Purpose: the one list of every field of a case: its JSON name, its range, whether it may be left
// out. The reader, the writer and the range check all walk it, so they cannot disagree.
// Contract: fields(walker, object) calls walker.field(name, member, rule) for each member in the
// order of the file. `object` is const for those that only look. Rules:
//   Range{low, high}     integers and reals, inclusive
//   OneOf{}              an enumerator by its name
//   Text{bytes_max}      UTF-8
//   Flag{}               true or false
//   List{items_max}      of whatever the element type is
// The walker overloads `field` for each kind of member; `optional` marks members that a file may
// leave out, and that the writer leaves out when they have their default.
#pragma once

#include <type_traits>

#include "harness/case/case.h"
#include "harness/case/limits.h"

namespace kv::schema {

template <class T>
struct Range {
  T low, high;
};
struct OneOf {};
struct Flag {};
struct Text {
  uint32_t bytes_max;
};
struct List {
  uint32_t items_min, items_max;
};

template <class S, class T>
concept Of = std::is_same_v<std::remove_const_t<S>, T>;

inline constexpr Range<uint64_t> kRequestIds{0, limits::kRequestIdMax};
inline constexpr Range<uint64_t> kSlots{0, limits::kSlotsMax};
inline constexpr Range<uint64_t> kRowTokens{0, limits::kRowTokensMax};
inline constexpr Range<uint64_t> kAnyU64{0, ~uint64_t{0}};
inline constexpr Range<int64_t> kWindows{-1, limits::kWindowMax};

// ---------------------------------------------------------------- groups

template <Of<Rope> S>
void fields(auto& walk, S& rope) {
  walk.field("pairing", rope.pairing, OneOf{});
  walk.field("dims", rope.dims, Range<uint64_t>{0, limits::kHeadDimMax});
  walk.field("theta", rope.theta, Range<double>{1, limits::kRopeThetaMax});
}

template <Of<Shape> S>
void fields(auto& walk, S& shape) {
  constexpr Range<uint64_t> kHeads{1, limits::kHeadsMax};
  constexpr Range<uint64_t> kDims{1, limits::kHeadDimMax};
  walk.field("layers", shape.layers, Range<uint64_t>{1, limits::kLayersMax});
  walk.field("query_heads", shape.query_heads, kHeads);
  walk.field("kv_heads", shape.kv_heads, kHeads);
  walk.field("head_dim_k", shape.head_dim_k, kDims);
  walk.field("head_dim_v", shape.head_dim_v, kDims);
  walk.field("query_dtype", shape.query_dtype, OneOf{});
  walk.field("kv_dtype", shape.kv_dtype, OneOf{});
  walk.field("output_dtype", shape.output_dtype, OneOf{});
  walk.field("scale", shape.scale, Range<double>{-limits::kScaleMax, limits::kScaleMax});
  walk.field("softcap", shape.softcap, Range<double>{0, limits::kScaleMax});
  walk.field("alibi", shape.alibi, Flag{});
  walk.field("sinks", shape.sinks, Flag{});
  walk.field("rope", shape.rope);
  walk.field("kv_scale", shape.kv_scale, OneOf{});
  walk.optional("value_in_key", shape.value_in_key, Flag{});
}

template <Of<Mask> S>
void fields(auto& walk, S& mask) {
  walk.field("causal", mask.causal, OneOf{});
  walk.field("window_left", mask.window_left, kWindows);
  walk.field("window_right", mask.window_right, kWindows);
  walk.field("encoding", mask.encoding, OneOf{});
  walk.field("additive_dtype", mask.additive_dtype, OneOf{});
  walk.field("additive_finite_minimum", mask.additive_finite_minimum, Flag{});
  walk.field("broadcast_batch", mask.broadcast_batch, Flag{});
  walk.field("broadcast_head", mask.broadcast_head, Flag{});
  walk.field("broadcast_query", mask.broadcast_query, Flag{});
  walk.optional("first_number", mask.first_number, kAnyU64);
}

template <Of<Pool> S>
void fields(auto& walk, S& pool) {
  walk.field("page_slots", pool.page_slots, Range<uint64_t>{1, limits::kPageSlotsMax});
  walk.field("page_count", pool.page_count, Range<uint64_t>{1, limits::kPageCountMax});
  walk.field("order", pool.order, OneOf{});
  walk.field("layout", pool.layout, OneOf{});
  walk.field("poison", pool.poison, OneOf{});
  walk.field("overcommit", pool.overcommit, Range<double>{1, limits::kOvercommitMax});
}

template <Of<Data::Override> S>
void fields(auto& walk, S& o) {
  walk.field("tensor", o.tensor, Range<uint64_t>{0, 2});
  walk.field("request", o.request, kRequestIds);
  walk.field("slot", o.slot, kSlots);
  walk.field("layer", o.layer, Range<uint64_t>{0, limits::kLayersMax - 1});
  walk.field("head", o.head, Range<uint64_t>{0, limits::kHeadsMax - 1});
  walk.field("dim", o.dim, Range<uint64_t>{0, limits::kHeadDimMax - 1});
  walk.field("value", o.value, Range<double>{-3.5e38, 3.5e38});
}

template <Of<DataView> S>
void fields(auto& walk, S& view) {
  walk.field("kv_head_repeat", view.kv_head_repeat, Range<uint64_t>{1, limits::kHeadsMax});
  walk.field("head_rotation", view.head_rotation, Range<uint64_t>{0, limits::kHeadsMax});
  walk.field("value_rotation", view.value_rotation, Range<uint64_t>{0, limits::kHeadDimMax});
  walk.field("key_exponent", view.key_exponent, Range<uint64_t>{0, limits::kKeyExponentMax});
  walk.field("logit_shift", view.logit_shift,
             Range<double>{-limits::kLogitShiftMax, limits::kLogitShiftMax});
}

template <Of<Data> S>
void fields(auto& walk, S& data) {
  walk.field("version", data.version, Range<uint64_t>{1, 1});
  walk.field("design", data.design, OneOf{});
  walk.field("seed", data.seed, kAnyU64);
  walk.optional("digest", data.digest, kAnyU64);
  walk.optional("overrides", data.overrides, List{0, limits::kOverridesMax});
  walk.optional("tensors_file", data.tensors_file, Text{limits::kPathBytesMax});
  walk.optional("view", data.view);
}

template <Of<Exec> S>
void fields(auto& walk, S& exec) {
  walk.field("variant", exec.variant, Text{limits::kNameBytesMax});
  walk.field("split_slots", exec.split_slots, Range<uint64_t>{0, limits::kSplitSlotsMax});
  walk.optional("cascade_slots", exec.cascade_slots, Range<uint64_t>{0, limits::kSplitSlotsMax});
  walk.field("schedule_seed", exec.schedule_seed, kAnyU64);
  walk.field("rounding", exec.rounding, OneOf{});
  walk.field("rounding_seed", exec.rounding_seed, kAnyU64);
  walk.field("repeat", exec.repeat, Range<uint64_t>{1, limits::kRepeatMax});
  walk.optional("preceding", exec.preceding, List{0, limits::kPrecedingMax},
                Text{limits::kPathBytesMax});
  walk.optional("relation", exec.relation, Text{limits::kNameBytesMax});
  walk.optional("relation_seed", exec.relation_seed, kAnyU64);
  walk.optional("graph", exec.graph, Flag{});
}

template <Of<CacheGroup> S>
void fields(auto& walk, S& group) {
  walk.field("layers", group.layers, Range<uint64_t>{1, limits::kLayersMax});
  walk.field("window_left", group.window_left, kWindows);
}

template <Of<EngineLevel> S>
void fields(auto& walk, S& engine) {
  walk.optional("groups", engine.groups, List{0, limits::kLayersMax});
  walk.field("host_page_count", engine.host_page_count, Range<uint64_t>{0, limits::kPageCountMax});
  walk.field("batch_slots", engine.batch_slots, Range<uint64_t>{1, limits::kStepRowsMax});
  walk.field("request_max", engine.request_max, Range<uint64_t>{1, limits::kRequestIdMax});
  walk.field("context_limit", engine.context_limit, Range<uint64_t>{1, limits::kSlotsMax});
  walk.field("step_tokens_max", engine.step_tokens_max, Range<uint64_t>{1, limits::kRowTokensMax});
  walk.field("async_depth", engine.async_depth, Range<uint64_t>{0, limits::kAsyncDepthMax});
  walk.field("prefix_cache", engine.prefix_cache, Flag{});
  walk.field("draft_layers", engine.draft_layers, Range<uint64_t>{0, limits::kLayersMax});
  walk.field("draft_page_count", engine.draft_page_count,
             Range<uint64_t>{0, limits::kPageCountMax});
}

// ---------------------------------------------------------------- operations

template <Of<op::Admit> S>
void fields(auto& walk, S& admit) {
  walk.field("request", admit.request, kRequestIds);
  walk.field("prompt_tokens", admit.prompt_tokens, Range<uint64_t>{0, limits::kPromptTokensMax});
  walk.optional("side_input", admit.side_input, kAnyU64);
  walk.optional("position_offset", admit.position_offset,
                Range<int64_t>{-limits::kPositionOffsetMax, limits::kPositionOffsetMax});
  walk.optional("prefix_of", admit.prefix_of, kRequestIds);
  walk.optional("prefix_tokens", admit.prefix_tokens, Range<uint64_t>{0, limits::kPromptTokensMax});
  walk.optional("owner", admit.owner, kAnyU64);
  walk.optional("slots_max", admit.slots_max, kSlots);
}

template <Of<op::Append> S>
void fields(auto& walk, S& append) {
  walk.field("request", append.request, kRequestIds);
  walk.field("tokens", append.tokens, Range<uint64_t>{0, limits::kPromptTokensMax});
}

template <Of<op::StepRow> S>
void fields(auto& walk, S& row) {
  walk.field("request", row.request, kRequestIds);
  walk.optional("append", row.append, kRowTokens);
  walk.optional("pad_left", row.pad_left, kRowTokens);
  walk.optional("pad_right", row.pad_right, kRowTokens);
  walk.optional("queries", row.queries, kRowTokens);
  walk.optional("tree_parents", row.tree_parents, List{0, limits::kRowTokensMax},
                Range<int64_t>{-1, limits::kRowTokensMax});
  walk.optional("speculative", row.speculative, kRowTokens);
  walk.optional("cancel_before_layer", row.cancel_before_layer,
                Range<uint64_t>{0, limits::kLayersMax});
}

template <Of<op::Step> S>
void fields(auto& walk, S& step) {
  walk.field("rows", step.rows, List{1, limits::kStepRowsMax});
  walk.optional("padded_layout", step.padded_layout, Flag{});
  walk.optional("padded_left", step.padded_left, Flag{});
  walk.optional("draft", step.draft, Flag{});
}

template <Of<op::Fork> S>
void fields(auto& walk, S& fork) {
  walk.field("parent", fork.parent, kRequestIds);
  walk.field("child", fork.child, kRequestIds);
}

template <Of<op::Reorder> S>
void fields(auto& walk, S& reorder) {
  walk.field("beams", reorder.beams, List{1, limits::kStepRowsMax}, kRequestIds);
  walk.field("sources", reorder.sources, List{1, limits::kStepRowsMax}, kRequestIds);
}

template <Of<op::Truncate> S>
void fields(auto& walk, S& truncate) {
  walk.field("request", truncate.request, kRequestIds);
  walk.field("length", truncate.length, kSlots);
}

template <Of<op::Shift> S>
void fields(auto& walk, S& shift) {
  walk.field("request", shift.request, kRequestIds);
  walk.field("begin", shift.begin, kSlots);
  walk.field("end", shift.end, kSlots);
}

template <class S>
requires Of<S, op::Cancel> || Of<S, op::Finish> || Of<S, op::Resume> || Of<S, op::Save>
void fields(auto& walk, S& op) { walk.field("request", op.request, kRequestIds); }

template <Of<op::Restore> S>
void fields(auto& walk, S& restore) {
  walk.field("request", restore.request, kRequestIds);
  walk.field("saved", restore.saved, kRequestIds);
}

template <Of<op::Preempt> S>
void fields(auto& walk, S& preempt) {
  walk.field("request", preempt.request, kRequestIds);
  walk.optional("swap", preempt.swap, Flag{});
}

template <Of<op::Evict> S>
void fields(auto& walk, S& evict) {
  walk.field("pages", evict.pages, Range<uint64_t>{0, limits::kPageCountMax});
}

template <Of<op::Defrag> S>
void fields(auto&, S&) {}

template <Of<op::Complete> S>
void fields(auto& walk, S& complete) {
  walk.field("step", complete.step, Range<uint64_t>{0, limits::kOpsMax});
}

template <Of<op::FailAllocation> S>
void fields(auto& walk, S& fail) {
  walk.field("nth", fail.nth, Range<uint64_t>{1, uint64_t{1} << 32});
}

template <Of<op::Hostile> S>
void fields(auto& walk, S& hostile) {
  walk.field("kind", hostile.kind, OneOf{});
  walk.field("request", hostile.request, kRequestIds);
}

// ---------------------------------------------------------------- the case

template <Of<Case> S>
void fields(auto& walk, S& c) {
  walk.field("version", c.version, Range<uint64_t>{1, 1});
  walk.field("name", c.name, Text{limits::kNameBytesMax});
  walk.field("comment", c.comment, Text{limits::kCommentBytesMax});
  walk.field("shape", c.shape);
  walk.field("mask", c.mask);
  walk.field("pool", c.pool);
  walk.field("data", c.data);
  walk.field("ops", c.ops, List{0, limits::kOpsMax});
  walk.field("exec", c.exec);
  walk.optional("engine", c.engine);
}

}  // namespace kv::schema
