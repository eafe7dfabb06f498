// Purpose: what a PTX name means at this place in the text.
// Contract: scopes nest by enter() and leave(); an inner declaration hides an outer one. Lookup
// costs the same at every depth. Keys are views into the module's text or name store.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/simt/ptx/module.h"

namespace kv::simt::ptx {

struct Binding {
  enum class Kind : uint8_t {
    kRegister,        // index; `count` of them when declared as a range, %r<count>
    kVectorRegister,  // index of .x; `count` lanes
    kSymbol,          // symbol, under the name `unique_name`
    kBranchTargets,   // index into the parser's branch tables
    kPrototype,       // of an indirect call
  };
  Kind kind = Kind::kRegister;
  int32_t index = -1;
  uint32_t count = 1;
  SymbolRef symbol = {};
  std::string_view unique_name = {};
};

/// One namespace: names to bindings, with an undo log for leave().
class ScopedMap {
 public:
  struct Found {
    const Binding* binding = nullptr;
    uint32_t depth = 0;
  };
  Found find(std::string_view name) const;
  /// False if this scope already has the name.
  bool add(std::string_view name, const Binding& binding);
  void enter() { marks_.push_back(entries_.size()); }
  void leave();

 private:
  struct Entry {
    std::string_view name;
    Binding binding;
    uint32_t depth = 0;
    int32_t hidden = -1;  // the entry that this one hides
  };
  std::vector<Entry> entries_;
  std::vector<size_t> marks_;
  std::unordered_map<std::string_view, int32_t> latest_;  // looked up only, never iterated
};

class NameTable {
 public:
  const Binding* find(std::string_view name) const { return names_.find(name).binding; }
  /// Index of the scalar register called `name`, declared alone or in a range; -1 if none.
  int32_t find_register(std::string_view name) const;
  bool add(std::string_view name, const Binding& binding) { return names_.add(name, binding); }
  /// Declares prefix0 .. prefix(count-1), with consecutive indices from binding.index.
  bool add_range(std::string_view prefix, const Binding& binding) {
    return ranges_.add(prefix, binding);
  }
  void enter();
  void leave();

 private:
  ScopedMap names_, ranges_;
};

}  // namespace kv::simt::ptx
