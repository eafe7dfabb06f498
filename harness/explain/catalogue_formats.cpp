// Hypotheses about how attention reads a cache of 8-bit codes, and how it turns its queries.
#include "harness/explain/catalogue.h"

namespace kv {
namespace {

int64_t position_of(const Scene& s, const RowAt& at) {
  const int64_t slot = query_slot(s.step().rows[at.row], at.query);
  return slot_or_tokenless(s.c(), s.sequence(at.row), slot).position;
}

// One position for several rows, or another count of theirs.
void query_position_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back({"query-position-of-batch-first",
                 "every query is turned to the position of the first query of the batch",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.position_shift = position_of(s, s.row_of_token(0, at)) - position_of(s, at);
                 }});
  out.push_back({"query-position-of-first",
                 "every query is turned to the position of the first query of its request",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   RowAt first = at;
                   first.query = 0;
                   r.position_shift = position_of(s, first) - position_of(s, at);
                 }});
  out.push_back({"query-position-in-step",
                 "every query is turned to its number in the step, not to its position",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.position_shift = int64_t{at.query} - position_of(s, at);
                 }});
  out.push_back({"query-position-of-slot",
                 "every query is turned to the number of its slot, PAD counted",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const int64_t slot = query_slot(s.step().rows[at.row], at.query);
                   r.position_shift = slot - position_of(s, at);
                 }});
}

void rope_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  const Rope& rope = scene.c().shape.rope;
  const bool neox = rope.pairing == RopePairing::kNeox;
  out.push_back({"query-rope-pairing",
                 std::string("queries are turned in ") + (neox ? "interleaved" : "neox") + " pairs",
                 [neox](const Scene&, const RowAt&, Reading& r) {
                   r.rope.pairing = neox ? RopePairing::kInterleaved : RopePairing::kNeox;
                 }});
  out.push_back({"query-rope-missing", "queries are not turned",
                 [](const Scene&, const RowAt&, Reading& r) { r.rope = {}; }});
  for (const int64_t by : {1, -1}) {
    out.push_back({by > 0 ? "query-position-plus-one" : "query-position-minus-one",
                   std::string("queries are turned to the position ") +
                       (by > 0 ? "after" : "before") + " theirs",
                   [by](const Scene&, const RowAt&, Reading& r) { r.position_shift = by; }});
    const int64_t dims = int64_t{rope.dims} + 2 * by;
    if (dims < 2 || dims > scene.c().shape.head_dim_k) continue;
    out.push_back({by > 0 ? "query-rope-one-pair-more" : "query-rope-one-pair-less",
                   std::string("one pair of dimensions too ") + (by > 0 ? "many" : "few") +
                       " of the queries is turned",
                   [dims](const Scene&, const RowAt&, Reading& r) {
                     r.rope.dims = static_cast<uint32_t>(dims);
                   }});
  }
  query_position_hypotheses(out);
  out.push_back({"query-position-offset-ignored",
                 "queries are turned as if their request's position offset were 0",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.position_shift = -s.sequence(at.row).position_offset;
                 }});
}

struct ScaleFault {
  const char* name;
  const char* sentence;
  ScaleSource source;
};
constexpr ScaleFault kScaleFaults[] = {
    {"missing", "is left out", ScaleSource::kNone},
    {"twice", "is applied twice", ScaleSource::kTwice},
    {"of-next-slot", "is that of the next slot", ScaleSource::kNextSlot},
    {"of-previous-slot", "is that of the slot before", ScaleSource::kPreviousSlot},
    {"of-next-head", "is that of the next head", ScaleSource::kNextHead},
    {"of-page", "is that of the first slot of the page", ScaleSource::kFirstOfPage},
    {"of-other-tensor", "is that of the other tensor", ScaleSource::kOtherTensor},
};

void scale_hypotheses(std::vector<Hypothesis>& out) {
  for (const bool value : {false, true}) {
    for (const ScaleFault& fault : kScaleFaults) {
      out.push_back({std::string(value ? "value" : "key") + "-scale-" + fault.name,
                     std::string("the scale of ") + (value ? "V " : "K ") + fault.sentence,
                     [value, source = fault.source](const Scene&, const RowAt&, Reading& r) {
                       (value ? r.value_scale : r.key_scale) = source;
                     }});
    }
  }
}

void code_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  for (const DType other : {DType::kE4m3, DType::kE5m2, DType::kI8}) {
    if (other == scene.c().shape.kv_dtype) continue;
    const std::string name(dtype_name(other));
    out.push_back({"codes-as:" + name, "the codes of K and V are read as " + name,
                   [other](const Scene&, const RowAt&, Reading& r) { r.stored_type = other; }});
  }
}

}  // namespace

void format_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  const Shape& shape = scene.c().shape;
  if (shape.rope.pairing != RopePairing::kNone) rope_hypotheses(scene, out);
  if (shape.kv_scale != KvScale::kNone) scale_hypotheses(out);
  if (dtype_bytes(shape.kv_dtype) == 1) code_hypotheses(scene, out);
}

}  // namespace kv
