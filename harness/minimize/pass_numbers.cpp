// Every leaf of the schema by itself: integers by bisection, names, seeds and reals by trying the
// simpler ones in turn; then what the schema keeps in optionals, texts and lists.
#include <cmath>
#include <map>

#include "harness/minimize/leaves.h"
#include "harness/minimize/passes.h"

namespace kv {
namespace {

struct Leaf {
  enum class Kind : uint8_t { kInteger, kSeed, kReal, kName, kKept };
  Kind kind = Kind::kInteger;
  int64_t value = 0, simplest = 0;
  double real = 0, real_simplest = 0;
};

struct LeafReader {
  std::vector<Leaf> leaves;

  void id(const RequestId&) {}  // a pass of their own
  template <class T, class Bound>
  void number(const T& member, const schema::Range<Bound>& rule) {
    Leaf leaf;
    if constexpr (std::is_floating_point_v<T>) {
      leaf.kind = Leaf::Kind::kReal;
      leaf.real = static_cast<double>(member);
      leaf.real_simplest = static_cast<double>(simplest(rule));
    } else {
      // 64-bit seeds have no order worth a bisection.
      const double range = static_cast<double>(rule.high) - static_cast<double>(rule.low);
      leaf.kind = range > 0x1p62 ? Leaf::Kind::kSeed : Leaf::Kind::kInteger;
      leaf.value = static_cast<int64_t>(member);
      leaf.simplest = static_cast<int64_t>(simplest(rule));
    }
    leaves.push_back(leaf);
  }
  template <class T>
  void choice(const T& member) {
    Leaf leaf;
    // The order of the designs is none of simplicity; they have a pass of their own.
    leaf.kind = std::is_same_v<T, Design> ? Leaf::Kind::kKept : Leaf::Kind::kName;
    leaf.value = static_cast<int64_t>(member);
    leaves.push_back(leaf);
  }
};

struct LeafWriter {
  size_t index = 0;
  Leaf leaf;
  size_t at = 0;

  void id(RequestId&) {}
  template <class T, class Bound>
  void number(T& member, const schema::Range<Bound>&) {
    if (at++ != index) return;
    if constexpr (std::is_floating_point_v<T>) {
      member = static_cast<T>(leaf.real);
    } else {
      member = static_cast<T>(leaf.value);
    }
  }
  template <class T>
  void choice(T& member) {
    if (at++ == index) member = static_cast<T>(leaf.value);
  }
};

std::vector<Leaf> leaves_of(const Case& c) {
  LeafReader reader;
  for_each_leaf(c, reader);
  return std::move(reader.leaves);
}

bool take_with(Shrinker& shrinker, size_t index, const Leaf& leaf) {
  Case c = shrinker.best();
  LeafWriter writer{index, leaf};
  for_each_leaf(c, writer);
  return shrinker.take(std::move(c));
}

bool take_integer(Shrinker& shrinker, size_t index, Leaf leaf, int64_t value) {
  leaf.value = value;
  return take_with(shrinker, index, leaf);
}

void bisect(Shrinker& shrinker, size_t index, const Leaf& leaf) {
  if (leaf.value == leaf.simplest || take_integer(shrinker, index, leaf, leaf.simplest)) return;
  int64_t bad = leaf.simplest, good = leaf.value;
  while (std::abs(good - bad) > 1 && !shrinker.spent()) {
    const int64_t middle = bad + (good - bad) / 2;
    (take_integer(shrinker, index, leaf, middle) ? good : bad) = middle;
  }
}

void try_names(Shrinker& shrinker, size_t index, const Leaf& leaf) {
  constexpr int64_t kSeedsMax = 4;
  const int64_t end = leaf.kind == Leaf::Kind::kName || (leaf.value >= 0 && leaf.value < kSeedsMax)
                          ? leaf.value
                          : kSeedsMax;
  for (int64_t value = 0; value < end; ++value) {
    if (take_integer(shrinker, index, leaf, value)) return;
  }
}

void try_reals(Shrinker& shrinker, size_t index, Leaf leaf) {
  const double was = leaf.real;
  for (const double candidate : {leaf.real_simplest, 1.0, -1.0, std::trunc(was),
                                 std::trunc(was * 8) / 8, std::trunc(was * 1024) / 1024}) {
    leaf.real = candidate;
    if (candidate == was || take_with(shrinker, index, leaf)) return;
  }
}

template <class Edit>
void take_edited(Shrinker& shrinker, Edit edit) {
  Case c = shrinker.best();
  edit(c);
  if (!(c == shrinker.best())) shrinker.take(std::move(c));
}

}  // namespace

void shrink_numbers(Shrinker& shrinker) {
  for (size_t i = 0; !shrinker.spent(); ++i) {
    const std::vector<Leaf> leaves = leaves_of(shrinker.best());
    if (i >= leaves.size()) return;
    switch (leaves[i].kind) {
      case Leaf::Kind::kInteger:
        bisect(shrinker, i, leaves[i]);
        break;
      case Leaf::Kind::kSeed:
      case Leaf::Kind::kName:
        try_names(shrinker, i, leaves[i]);
        break;
      case Leaf::Kind::kReal:
        try_reals(shrinker, i, leaves[i]);
        break;
      case Leaf::Kind::kKept:
        break;
    }
  }
}

void drop_settings(Shrinker& shrinker) {
  take_edited(shrinker, [](Case& c) { c.mask = {}; });
  take_edited(shrinker, [](Case& c) { c.mask = {.causal = Causal::kNone}; });
  take_edited(shrinker, [](Case& c) { c.exec = {.variant = c.exec.variant}; });
  take_edited(shrinker, [](Case& c) { c.exec.variant.clear(); });
  take_edited(shrinker, [](Case& c) { c.exec.preceding.clear(); });
  take_edited(shrinker, [](Case& c) {
    c.shape.softcap = 0;
    c.shape.alibi = c.shape.sinks = false;
    c.shape.kv_scale = KvScale::kNone;
  });
  take_edited(shrinker, [](Case& c) { c.shape.rope = {}; });
  take_edited(shrinker, [](Case& c) {
    c.shape.kv_dtype = c.shape.query_dtype;
    c.shape.kv_scale = KvScale::kNone;
  });
  for (size_t i = 0; i < shrinker.best().ops.size(); ++i) {
    take_edited(shrinker, [i](Case& c) {
      auto* admit = std::get_if<op::Admit>(&c.ops[i]);
      if (admit == nullptr) return;
      *admit = {.request = admit->request, .prompt_tokens = admit->prompt_tokens};
    });
    take_edited(shrinker, [i](Case& c) {
      auto* step = std::get_if<op::Step>(&c.ops[i]);
      for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
        step->rows[r].tree_parents.clear();
      }
    });
  }
}

// Requests get the numbers 0, 1, ... in the order of their admission.
void number_requests(Shrinker& shrinker) {
  take_edited(shrinker, [](Case& c) {
    std::map<RequestId, RequestId> names;
    for (const Op& operation : c.ops) {
      const auto add = [&names](RequestId id) {
        names.emplace(id, static_cast<uint32_t>(names.size()));
      };
      if (const auto* admit = std::get_if<op::Admit>(&operation)) add(admit->request);
      if (const auto* fork = std::get_if<op::Fork>(&operation)) add(fork->child);
      if (const auto* restore = std::get_if<op::Restore>(&operation)) add(restore->request);
    }
    const auto rename = [&names](RequestId& id) {
      if (const auto found = names.find(id); found != names.end()) id = found->second;
    };
    for (Op& operation : c.ops) {
      std::visit(
          [&rename](auto& o) {
            if constexpr (requires { o.request; }) rename(o.request);
            if constexpr (requires { o.parent; }) rename(o.parent), rename(o.child);
            if constexpr (requires { o.saved; }) rename(o.saved);
            if constexpr (requires { o.rows; }) {
              for (auto& row : o.rows) rename(row.request);
            }
            if constexpr (requires { o.prefix_of; }) {
              if (o.prefix_of) rename(*o.prefix_of);
            }
            if constexpr (requires { o.beams; }) {
              for (RequestId& id : o.beams) rename(id);
              for (RequestId& id : o.sources) rename(id);
            }
          },
          operation);
    }
    for (Data::Override& o : c.data.overrides) rename(o.request);
  });
}

}  // namespace kv
