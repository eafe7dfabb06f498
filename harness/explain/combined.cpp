#include "harness/explain/combined.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kv {
namespace {

constexpr size_t kPairsMax = 30000;
// Slots times dimensions of a row: a pair costs as much.
constexpr uint64_t kPairWorkMax = 1 << 14;

// ---------------------------------------------------------------- kinds of rows

uint32_t group_of(const Shape& s) { return s.query_heads / s.kv_heads; }

struct Kind {
  const char *name, *words;
  uint32_t (*number)(const Scene&, const RowAt&);
};
// The number of a row within its kind: rows of one number are a kind.
constexpr Kind kKinds[] = {
    {"head-of-group", "in query head {} of each group alone",
     [](const Scene& s, const RowAt& at) { return at.head % group_of(s.c().shape); }},
    {"kv-head", "at KV head {} alone",
     [](const Scene& s, const RowAt& at) { return at.head / group_of(s.c().shape); }},
    {"layer", "in layer {} alone", [](const Scene&, const RowAt& at) { return at.layer; }},
    {"request", "for request {} of the batch alone",
     [](const Scene&, const RowAt& at) { return at.row; }},
    {"query", "for query {} of each request alone",
     [](const Scene&, const RowAt& at) { return at.query; }},
    {"query-from-last", "for query {} from the last of each request alone",
     [](const Scene& s, const RowAt& at) { return s.step().rows[at.row].queries - 1 - at.query; }},
};

/// "kv-head=2"
std::string kind_name(const Kind& kind, uint32_t number) {
  return fmt::format("{}={}", kind.name, number);
}

struct Place {
  const Kind* kind = nullptr;
  uint32_t number = 0;
};
std::optional<Place> place_of(const std::string& name) {
  const size_t equals = name.find('=');
  for (const Kind& kind : kKinds) {
    if (name.substr(0, equals) != kind.name) continue;
    Place place{&kind, 0};
    std::from_chars(name.data() + equals + 1, name.data() + name.size(), place.number);
    return place;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- combinations

std::string own_sentence(const Hypothesis& h) {
  return h.family.empty() ? h.sentence : fmt::format(fmt::runtime(h.sentence), h.size);
}

Hypothesis limited(const Hypothesis& h, const Place& place) {
  Hypothesis out = h;
  const std::string kind = kind_name(*place.kind, place.number);
  out.parts = {h.name};
  out.kind = kind;
  out.name = h.name + "@" + kind;
  const std::string rows = fmt::format(fmt::runtime(place.kind->words), place.number);
  out.sentence = h.sentence + ", " + rows;
  if (!h.family.empty()) out.family = h.family + "@" + kind;
  out.change = [change = h.change, place](const Scene& s, const RowAt& at, Reading& r) {
    if (place.kind->number(s, at) == place.number) change(s, at, r);
  };
  return out;
}

Hypothesis paired(const Hypothesis& a, const Hypothesis& b) {
  Hypothesis out;
  out.name = a.name + "+" + b.name;
  out.sentence = "two things are wrong at once: " + own_sentence(a) + ", and " + own_sentence(b);
  out.parts = {a.name, b.name};
  out.change = [first = a.change, second = b.change](const Scene& s, const RowAt& at, Reading& r) {
    first(s, at, r);
    second(s, at, r);
  };
  return out;
}

/// What was fitted, widens the interval, or says nothing of a part would fit beside anything.
bool can_be_combined(const Hypothesis& h) { return !h.fitted && h.name != "lse-wrong-only"; }
bool is_exact(const Reading& r) {
  return r.fate == RowFate::kNumbers && !r.lse_open && !r.arithmetic;
}

}  // namespace

std::vector<Hypothesis> limited_candidates(const Scene& scene, std::span<const RowAt> wrong,
                                           const std::vector<Hypothesis>& from) {
  std::vector<Hypothesis> out;
  for (const Kind& kind : kKinds) {
    const Place place{&kind, kind.number(scene, wrong.front())};
    const auto is_of_kind = [&](const RowAt& at) { return kind.number(scene, at) == place.number; };
    if (!std::all_of(wrong.begin(), wrong.end(), is_of_kind)) continue;
    if (std::all_of(scene.rows().begin(), scene.rows().end(), is_of_kind)) continue;
    for (const Hypothesis& h : from) {
      if (!can_be_combined(h)) continue;
      Reading reading = scene.honest(wrong.front());
      h.change(scene, wrong.front(), reading);
      if (is_exact(reading) && scene.contains(wrong.front(), reading))
        out.push_back(limited(h, place));
    }
  }
  return out;
}

std::vector<Hypothesis> paired_candidates(const Scene& scene, const RowAt& wrong,
                                          const std::vector<Hypothesis>& from) {
  std::vector<Hypothesis> out;
  const Reading honest = scene.honest(wrong);
  const Shape& shape = scene.c().shape;
  if (honest.copies.size() * (shape.head_dim_k + shape.head_dim_v) > kPairWorkMax) return out;
  std::vector<std::pair<const Hypothesis*, Reading>> changing;
  for (const Hypothesis& h : from) {
    Reading reading = honest;
    if (can_be_combined(h)) h.change(scene, wrong, reading);
    if (is_exact(reading) && !(reading == honest)) changing.emplace_back(&h, std::move(reading));
  }
  size_t tried = 0;
  for (size_t i = 0; i < changing.size(); ++i) {
    for (size_t j = i + 1; j < changing.size(); ++j) {
      if (++tried > kPairsMax) return out;
      Reading reading = changing[i].second;
      changing[j].first->change(scene, wrong, reading);
      // Where the second undoes the first, or says all by itself, one would have done.
      if (reading == changing[i].second || reading == changing[j].second) continue;
      if (scene.contains(wrong, reading))
        out.push_back(paired(*changing[i].first, *changing[j].first));
    }
  }
  return out;
}

std::optional<Hypothesis> found_again(const Hypothesis& h, const std::vector<Hypothesis>& there) {
  const auto find = [&](const std::string& name) {
    const auto same = std::find_if(there.begin(), there.end(),
                                   [&](const Hypothesis& o) { return o.name == name; });
    return same == there.end() ? nullptr : &*same;
  };
  if (h.parts.empty()) {
    const Hypothesis* same = find(h.name);
    return same == nullptr ? std::nullopt : std::optional(*same);
  }
  std::vector<const Hypothesis*> parts;
  for (const std::string& name : h.parts) {
    parts.push_back(find(name));
    if (parts.back() == nullptr) return std::nullopt;
  }
  if (h.kind.empty()) return paired(*parts.at(0), *parts.at(1));
  const auto place = place_of(h.kind);
  return place ? std::optional(limited(*parts.at(0), *place)) : std::nullopt;
}

}  // namespace kv
