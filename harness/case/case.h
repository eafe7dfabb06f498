// Purpose: the one format of everything that kverify runs: a Case.
// Contract: plain values; a Case is complete (no clock, no machine, no file decides what it means)
// and bounded (limits.h). Every field of the schema exists from the start; what is not built yet
// is refused as unsupported by those who would have to execute it, never ignored.
// Conventions: positions and indices are 0-based; a request's cache is a sequence of slots, each a
// real token or PAD; the position id of a token = its request's position_offset + its index among
// the request's real tokens.
// Example: corpus/seeds/*.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/core/formats.h"
#include "harness/core/id.h"

namespace kv {

enum class RopePairing : uint8_t { kNone, kNeox, kInterleaved };
struct Rope {
  RopePairing pairing = RopePairing::kNone;
  uint32_t dims = 0;  // leading dimensions rotated, even, at most head_dim_k
  double theta = 10000.0;
  bool operator==(const Rope&) const = default;
};

enum class KvScale : uint8_t { kNone, kTensor, kHead, kToken, kPage };

struct Shape {
  uint32_t layers = 1;
  uint32_t query_heads = 1, kv_heads = 1;  // query_heads % kv_heads == 0
  uint32_t head_dim_k = 64, head_dim_v = 64;
  DType query_dtype = DType::kF16, kv_dtype = DType::kF16, output_dtype = DType::kF16;
  float scale = 0.125f;  // exact fp32 factor of q.k
  float softcap = 0;     // 0: none
  bool alibi = false, sinks = false;
  Rope rope;
  KvScale kv_scale = KvScale::kNone;
  /// V is the first head_dim_v dimensions of K and has no memory of its own: latent attention in
  /// its absorbed form.
  bool value_in_key = false;
  bool operator==(const Shape&) const = default;
};

enum class Causal : uint8_t { kNone, kTopLeft, kBottomRight };
enum class MaskEncoding : uint8_t { kNone, kPackedBits, kBoolKeep, kBoolBlock, kAdditive };
struct Mask {
  Causal causal = Causal::kBottomRight;
  int64_t window_left = -1, window_right = -1;  // inclusive, -1: unlimited; see kverify_plugin.h
  MaskEncoding encoding = MaskEncoding::kNone;
  DType additive_dtype = DType::kF32;
  bool additive_finite_minimum = false;  // hidden = lowest finite value rather than -inf
  bool broadcast_batch = false, broadcast_head = true, broadcast_query = false;
  /// The mask of request r is no pattern of the data seed but the bits of this number plus r: bit
  /// (query * slots of the request + key); what is beyond bit 63 is shown.
  std::optional<uint64_t> first_number = {};
  bool operator==(const Mask&) const = default;
};

enum class PageOrder : uint8_t { kIdentity, kReversed, kShuffled, kFarApart };
/// [page][slot][head]; [page][head][slot]; or [page][slot][K or V][head], and Q, K, V and O of a
/// step are then views, too: each token's row is followed by as many bytes that are none of theirs.
enum class CacheLayout : uint8_t { kSlotHead, kHeadSlot, kInterleaved };
enum class Poison : uint8_t { kUndefined, kFiniteHuge, kNan };
struct Pool {
  uint32_t page_slots = 16;  // a power of two, 1..256
  uint32_t page_count = 64;
  PageOrder order = PageOrder::kShuffled;  // kFarApart: shuffled, pages more than 4 GiB apart
  CacheLayout layout = CacheLayout::kSlotHead;
  Poison poison = Poison::kUndefined;  // what unused slots and table tails hold
  double overcommit = 1.0;
  bool operator==(const Pool&) const = default;
};

/// Input designs, docs/numerics.md §6.
enum class Design : uint8_t {
  kNormal,
  kUniformExact,
  kDyadic,
  kSubsetSelect,
  kSparseCode,
  kBoundaryNeedles,
  kAscending,
  kLargeScores,
  kCensus,
  kConstantValue,
};
/// The design's numbers presented otherwise: what metamorphic relations change (harness/relation).
/// Applied to the values of real tokens before rounding; overrides are not moved with them.
struct DataView {
  uint32_t kv_head_repeat = 1;  // KV head h holds what head h / kv_head_repeat would
  uint32_t head_rotation = 0;   // KV head h and its query heads hold what those of h + this would
  uint32_t value_rotation = 0;  // dimension d of V holds what dimension d + this would
  uint32_t key_exponent = 0;    // K is multiplied by 2^key_exponent
  double logit_shift = 0;       // added to each logit, through dimension 0 of Q and K; 0: as it is
  bool operator==(const DataView&) const = default;
};
struct Data {
  uint32_t version = 1;
  Design design = Design::kNormal;
  uint64_t seed = 0;
  /// Of all input bytes (input_digest); a replay that does not match is bad input.
  std::optional<uint64_t> digest = {};
  /// Explicit values that replace the design's, for hand-made and minimised cases. Sorted by
  /// (tensor, request, slot, layer, head, dim), each place at most once.
  struct Override {
    uint32_t tensor = 0;  // 0 q, 1 k, 2 v
    RequestId request = {};
    uint64_t slot = 0;  // slot of the request (k, v) or query row = slot of the same token (q)
    uint32_t layer = 0, head = 0, dim = 0;
    double value = 0;  // rounded to the tensor's dtype
    bool operator==(const Override&) const = default;
  };
  std::vector<Override> overrides = {};
  std::string tensors_file = {};  // safetensors side-car, relative to the case; "" for none
  DataView view = {};
  bool operator==(const Data&) const = default;
};

// ---------------------------------------------------------------- operations

namespace op {

struct Admit {
  RequestId request = {};
  uint64_t prompt_tokens = 0;
  uint64_t side_input = 0;  // adapter or salt; part of the prefix identity
  int64_t position_offset = 0;
  std::optional<RequestId> prefix_of = {};  // the first prefix_tokens tokens equal that request's
  uint64_t prefix_tokens = 0;
  uint64_t owner = 0;      // tenant (engine level)
  uint64_t slots_max = 0;  // it never holds more; 0: the context limit (engine level)
  bool operator==(const Admit&) const = default;
};
/// Another turn: prompt tokens join the request's stream (engine level).
struct Append {
  RequestId request = {};
  uint64_t tokens = 0;
  bool operator==(const Append&) const = default;
};
/// One row of a batch: append pad_left PAD slots, then `append` real tokens, then pad_right PAD
/// slots; then attend with the last `queries` slots' query rows (more queries than slots are
/// lawful: the first rows then see nothing under bottom-right alignment).
struct StepRow {
  RequestId request = {};
  uint32_t append = 0;
  uint32_t pad_left = 0, pad_right = 0;
  uint32_t queries = 0;
  /// Verify steps: parent of each appended token, -1 for the root; else empty.
  std::vector<int32_t> tree_parents = {};
  uint32_t speculative =
      0;  // the last of the appended that a truncate may take back (engine level)
  /// The request is cancelled while the step runs, between this layer and the one before it; 0: it
  /// is not (engine level).
  uint32_t cancel_before_layer = 0;
  bool operator==(const StepRow&) const = default;
};
struct Step {
  std::vector<StepRow> rows = {};
  bool padded_layout = false;  // [rows, longest] instead of ragged
  bool padded_left = false;    // of a padded layout: the queries of a row stand at its end
  bool draft = false;          // the draft model runs, on its own cache (engine level)
  bool operator==(const Step&) const = default;
};
struct Fork {
  RequestId parent = {}, child = {};
  bool operator==(const Fork&) const = default;
};
struct Reorder {  // beam i continues what sources[i] was; repeats and drops allowed
  std::vector<RequestId> beams = {}, sources = {};
  bool operator==(const Reorder&) const = default;
};
struct Truncate {
  RequestId request = {};
  uint64_t length = 0;
  bool operator==(const Truncate&) const = default;
};
struct Shift {  // drop slots [begin, end) and close the gap
  RequestId request = {};
  uint64_t begin = 0, end = 0;
  bool operator==(const Shift&) const = default;
};
struct Cancel {
  RequestId request = {};
  bool operator==(const Cancel&) const = default;
};
struct Finish {
  RequestId request = {};
  bool operator==(const Finish&) const = default;
};
struct Preempt {
  RequestId request = {};
  bool swap = false;
  bool operator==(const Preempt&) const = default;
};
struct Resume {
  RequestId request = {};
  bool operator==(const Resume&) const = default;
};
struct Evict {
  uint32_t pages = 0;
  bool operator==(const Evict&) const = default;
};
struct Defrag {
  bool operator==(const Defrag&) const = default;
};
struct Save {
  RequestId request = {};
  bool operator==(const Save&) const = default;
};
struct Restore {  // a new request from the bytes that `saved` gave last
  RequestId request = {};
  RequestId saved = {};
  bool operator==(const Restore&) const = default;
};
struct Complete {  // the in-flight step with this index ends now
  uint64_t step = 0;
  bool operator==(const Complete&) const = default;
};
struct FailAllocation {
  uint64_t nth = 1;
  bool operator==(const FailAllocation&) const = default;
};
/// A call that must be refused and change nothing.
struct Hostile {
  enum class Kind : uint8_t {
    kLengthMinusOne,
    kLengthPlusOne,
    kReleasedHandle,
    kForeignHandle,
    kWrongDtype,
    kPastLimit,
    kCorruptRestore,     // saved bytes with one changed
    kTruncatedRestore,   // saved bytes without the last
    kDuplicateRequest,   // admit of an id that exists
    kStepInFlightTwice,  // complete of a step that is not in flight
  };
  Kind kind = Kind::kLengthPlusOne;
  RequestId request = {};
  bool operator==(const Hostile&) const = default;
};

}  // namespace op

using Op =
    std::variant<op::Admit, op::Append, op::Step, op::Fork, op::Reorder, op::Truncate, op::Shift,
                 op::Cancel, op::Finish, op::Preempt, op::Resume, op::Evict, op::Defrag, op::Save,
                 op::Restore, op::Complete, op::FailAllocation, op::Hostile>;

/// Consecutive layers that share a window, and therefore a block table.
struct CacheGroup {
  uint32_t layers = 1;
  int64_t window_left = -1;  // inclusive, as in Mask
  bool operator==(const CacheGroup&) const = default;
};
/// An engine that owns its cache (kverify_engine.h). What a request's rows append is counted as if
/// nothing were found in the prefix cache: a row brings its request to the sum of its appends, at
/// most step_tokens_max tokens at a time. An operation that its request's state does not allow is
/// one that has to be refused.
struct EngineLevel {
  std::vector<CacheGroup> groups = {};  // empty: one, of all layers, with the mask's window
  uint32_t host_page_count = 0, batch_slots = 8, request_max = 16;
  uint32_t context_limit = 4096, step_tokens_max = 512;
  uint32_t async_depth = 0;
  bool prefix_cache = true;
  uint32_t draft_layers = 0, draft_page_count = 0;
  bool operator==(const EngineLevel&) const = default;
};

enum class Rounding : uint8_t { kNearest, kRandom, kUp, kDown, kMmaAmpere, kMmaHopper };
struct Exec {
  std::string variant;       // forced kernel variant, "" for the plugin's choice; steps that it is
                             // not offered for run the plugin's choice, and at least one must not
  uint32_t split_slots = 0;  // forced split size, 0 for the plugin's choice
  /// Each step is attended a second time in parts of this many slots (cascade.h), and the states
  /// are merged; 0: not.
  uint32_t cascade_slots = 0;
  uint64_t schedule_seed = 0;
  Rounding rounding = Rounding::kNearest;
  uint64_t rounding_seed = 0;
  uint32_t repeat = 1;
  std::vector<std::string> preceding;  // case files to run first, where history matters
  /// Metamorphic relation that the case and its image must keep (harness/relation); "" for none.
  /// The image is a pure function of the case and the seed.
  std::string relation;
  uint64_t relation_seed = 0;
  bool graph = false;  // attend is captured into a graph, and the graph is launched
  bool operator==(const Exec&) const = default;
};

struct Case {
  uint32_t version = 1;
  std::string name;     // for people
  std::string comment;  // origin, bug, why
  Shape shape;
  Mask mask;
  Pool pool;
  Data data;
  std::vector<Op> ops;
  Exec exec;
  std::optional<EngineLevel> engine = {};  // of a case for the engine level
  bool operator==(const Case&) const = default;
};

}  // namespace kv
