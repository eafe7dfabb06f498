#include "harness/simt/ptx/names.h"

namespace kv::simt::ptx {
namespace {

/// Splits "%r12" into "%r" and 12. False without a canonical number at the end.
bool split_number(std::string_view name, std::string_view* prefix, uint32_t* number) {
  size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  const size_t digits = name.size() - first;
  if (first == 0 || digits == 0 || digits > 9) return false;
  if (name[first] == '0' && digits > 1) return false;
  uint32_t value = 0;
  for (char c : name.substr(first)) value = value * 10 + uint32_t(c - '0');
  *prefix = name.substr(0, first);
  *number = value;
  return true;
}

}  // namespace

ScopedMap::Found ScopedMap::find(std::string_view name) const {
  const auto it = latest_.find(name);
  if (it == latest_.end() || it->second < 0) return {};
  const Entry& entry = entries_[size_t(it->second)];
  return {&entry.binding, entry.depth};
}

bool ScopedMap::add(std::string_view name, const Binding& binding) {
  const auto depth = uint32_t(marks_.size());
  int32_t& latest = latest_.try_emplace(name, -1).first->second;
  if (latest >= 0 && entries_[size_t(latest)].depth == depth) return false;
  entries_.push_back({name, binding, depth, latest});
  latest = int32_t(entries_.size()) - 1;
  return true;
}

void ScopedMap::leave() {
  for (; entries_.size() > marks_.back(); entries_.pop_back()) {
    latest_[entries_.back().name] = entries_.back().hidden;
  }
  marks_.pop_back();
}

void NameTable::enter() {
  names_.enter();
  ranges_.enter();
}

void NameTable::leave() {
  names_.leave();
  ranges_.leave();
}

int32_t NameTable::find_register(std::string_view name) const {
  const ScopedMap::Found single = names_.find(name);
  std::string_view prefix;
  uint32_t number = 0;
  if (split_number(name, &prefix, &number)) {
    const ScopedMap::Found range = ranges_.find(prefix);
    const bool in_range = range.binding && number < range.binding->count;
    if (in_range && (!single.binding || single.depth < range.depth)) {
      return range.binding->index + int32_t(number);
    }
  }
  const bool is_register = single.binding && single.binding->kind == Binding::Kind::kRegister;
  return is_register ? single.binding->index : -1;
}

}  // namespace kv::simt::ptx
