// Purpose: every number, name and switch of a case, one after another, with its simplest value.
// Contract: for_each_leaf(c, visit) calls visit.number(member, rule), visit.choice(member) or
// visit.id(request) for each leaf of the schema, in the order of the file; lists are entered, texts
// and optionals are left to passes of their own. A new field of the schema is shrunk without a
// change here. Example: WeightVisit visit; for_each_leaf(c, visit);
#pragma once

#include <type_traits>
#include <vector>

#include "harness/case/schema.h"

namespace kv {

template <class Visit>
class LeafWalker {
 public:
  explicit LeafWalker(Visit& visit) : visit_(visit) {}

  template <class T, class... Rules>
  void field(const char*, T& member, const Rules&... rules) {
    enter(member, rules...);
  }
  template <class T, class... Rules>
  void optional(const char*, T& member, const Rules&... rules) {
    enter(member, rules...);
  }

 private:
  template <class T>
  void enter(T& group) {
    if constexpr (std::is_same_v<std::remove_const_t<T>, Op>) {
      std::visit([this](auto& operation) { schema::fields(*this, operation); }, group);
    } else if constexpr (requires { group.has_value(); }) {
      // Whether there is one is left as it is, as with every optional member.
      if (group.has_value()) schema::fields(*this, *group);
    } else {
      schema::fields(*this, group);
    }
  }
  template <class T, class Bound>
  requires std::is_arithmetic_v<T>
  void enter(T& number, const schema::Range<Bound>& rule) { visit_.number(number, rule); }
  template <class T>
  requires std::is_same_v<std::remove_const_t<T>, RequestId>
  void enter(T& id, const schema::Range<uint64_t>&) { visit_.id(id); }
  template <class T>
  void enter(T& flag, const schema::Flag&) {
    visit_.choice(flag);
  }
  template <class T>
  void enter(T& name, const schema::OneOf&) {
    visit_.choice(name);
  }
  template <class T>
  void enter(T&, const schema::Text&) {}
  template <class T, class Rule>
  void enter(std::optional<T>&, const Rule&) {}
  template <class T, class Rule>
  void enter(const std::optional<T>&, const Rule&) {}
  template <class List, class... Rules>
  void enter(List& list, const schema::List&, const Rules&... rules) {
    for (auto& item : list) enter(item, rules...);
  }

  Visit& visit_;
};

template <class C, class Visit>
void for_each_leaf(C& c, Visit& visit) {
  LeafWalker<Visit> walker(visit);
  schema::fields(walker, c);
}

/// The value at which a number says the least: off (-1), zero, or the lowest that is lawful.
template <class Bound>
Bound simplest(const schema::Range<Bound>& rule) {
  if constexpr (std::is_signed_v<Bound> || std::is_floating_point_v<Bound>) {
    if (rule.low < -1) return 0;
  }
  return rule.low;
}

}  // namespace kv
