// The numbers themselves: the simplest design that still shows the fault; and, where the case has
// become so small that every number can be written down, small integers in their place.
#include <cmath>
#include <map>

#include "harness/case/data.h"
#include "harness/case/names.h"
#include "harness/minimize/passes.h"

namespace kv {
namespace {

constexpr size_t kExplicitMax = 256;  // numbers that a person might still look at

struct Tensor {
  TensorRole role;
  uint32_t number, heads, dims;
};

// Every element of Q, K and V that some step reads, in the order of overrides.
class Elements {
 public:
  explicit Elements(const Case& c) : case_(c) {}

  // Nothing when there are too many.
  std::vector<Data::Override> list() {
    Result<Timeline> created = Timeline::create(case_);
    if (!created.ok()) return {};
    Timeline& timeline = created.value();
    const Shape& s = case_.shape;
    for (uint32_t i = 0; i < case_.ops.size(); ++i) {
      for (const PlannedRow& row : timeline.apply(i).rows) {
        const Sequence& sequence = timeline.sequence(row.request);
        for (uint64_t slot = 0; slot < sequence.slots.size(); ++slot) {
          add({TensorRole::kKey, 1, s.kv_heads, s.head_dim_k}, sequence, slot);
          add({TensorRole::kValue, 2, s.kv_heads, s.head_dim_v}, sequence, slot);
          if (static_cast<int64_t>(slot) >= query_slot(row, 0))
            add({TensorRole::kQuery, 0, s.query_heads, s.head_dim_k}, sequence, slot);
          if (elements_.size() > kExplicitMax) return {};
        }
      }
    }
    std::vector<Data::Override> list;
    for (const auto& [place, value] : elements_) list.push_back(value);
    return list;
  }

 private:
  void add(const Tensor& t, const Sequence& sequence, uint64_t slot) {
    std::vector<std::byte> bytes(row_bytes(case_.shape, t.role));
    std::vector<double> values(row_elements(case_.shape, t.role));
    for (uint32_t layer = 0; layer < case_.shape.layers; ++layer) {
      for (uint32_t head = 0; head < t.heads; ++head) {
        fill_row(case_,
                 {.role = t.role,
                  .request = sequence.request,
                  .slot = slot,
                  .query_slot = static_cast<int64_t>(slot),
                  .layer = layer,
                  .head = head,
                  .kv_length = static_cast<uint32_t>(sequence.slots.size())},
                 sequence.slots[slot], bytes);
        decode_row(tensor_dtype(case_.shape, t.role), bytes.data(), values.size(), values.data());
        for (uint32_t dim = 0; dim < t.dims; ++dim) {
          const Data::Override o{t.number, sequence.request, slot, layer, head, dim, values[dim]};
          elements_[{o.tensor, o.request, o.slot, o.layer, o.head, o.dim}] = o;
        }
      }
    }
  }

  using Place = std::tuple<uint32_t, RequestId, uint64_t, uint32_t, uint32_t, uint32_t>;
  const Case& case_;
  std::map<Place, Data::Override> elements_;
};

}  // namespace

void simplify_design(Shrinker& shrinker) {
  if (!shrinker.best().data.tensors_file.empty()) {
    Case c = shrinker.best();
    c.data.tensors_file.clear();  // a fault that any values show needs no recorded ones
    shrinker.take(std::move(c));
  }
  const size_t designs = name_table<Design>().size();
  for (uint32_t rank = 0; rank < design_rank(shrinker.best().data.design); ++rank) {
    for (size_t d = 0; d < designs && !shrinker.spent(); ++d) {
      if (design_rank(static_cast<Design>(d)) != rank) continue;
      Case c = shrinker.best();
      c.data.design = static_cast<Design>(d);
      if (shrinker.take(std::move(c))) return;
    }
  }
}

// Only where the numbers are not small integers already.
void make_explicit(Shrinker& shrinker) {
  if (shrinker.spent() || !shrinker.best().data.overrides.empty()) return;
  if (design_rank(shrinker.best().data.design) <= design_rank(Design::kUniformExact)) return;
  std::vector<Data::Override> elements = Elements(shrinker.best()).list();
  if (elements.empty()) return;
  for (const double grid : {1.0, 8.0}) {
    Case c = shrinker.best();
    c.data.overrides = elements;
    c.data.tensors_file.clear();
    c.data.design = Design::kConstantValue;
    c.data.seed = 0;
    for (Data::Override& o : c.data.overrides) o.value = std::round(o.value * grid) / grid;
    if (shrinker.take_heavier(std::move(c))) return;
  }
}

}  // namespace kv
