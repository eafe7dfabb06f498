#include <fmt/format.h>

#include <limits>

#include "harness/case/json.h"
#include "harness/case/json_tree.h"
#include "harness/case/names.h"
#include "harness/case/problem.h"
#include "harness/case/schema.h"
#include "harness/case/validate.h"

namespace kv {
namespace {

// Walks the schema over one JSON object. Types are checked here, ranges by check_case afterwards;
// integers must fit the rule's type.
class ObjectReader {
 public:
  ObjectReader(const Json& value, Problem& problem) : problem_(problem) {
    asked_.reserve(16);
    if (value.is_object()) {
      object_ = &value;
    } else {
      problem_.report("an object", preview(value));
    }
  }

  template <class T, class... Rules>
  void field(const char* name, T& member, const Rules&... rules) {
    if (read(name, member, rules...) || problem_.found()) return;
    Problem::At at(problem_, name);
    problem_.report(expectation(member, rules...), "no such key");
  }

  template <class T, class... Rules>
  void optional(const char* name, T& member, const Rules&... rules) {
    read(name, member, rules...);
  }

  /// The first key that no field asked for is an error. `tag` is a key read by the caller.
  void finish(std::string_view tag = {}) {
    if (problem_.found() || object_ == nullptr) return;
    for (const auto& item : object_->items()) {
      const std::string& key = item.key();
      const bool known = key == tag || std::find(asked_.begin(), asked_.end(), key) != asked_.end();
      if (!known)
        problem_.report(fmt::format("only the keys {}", fmt::join(asked_, ", ")), in_quotes(key));
    }
  }

 private:
  // False when the key is absent.
  template <class T, class... Rules>
  bool read(const char* name, T& member, const Rules&... rules) {
    asked_.push_back(name);
    if (object_ == nullptr || problem_.found()) return true;
    const auto found = object_->find(name);
    if (found == object_->end()) return false;
    Problem::At at(problem_, name);
    get(*found, member, rules...);
    return true;
  }

  template <class T>
  std::string expectation(const T&) const {
    return "an object";
  }
  template <class T, class Rule, class... Items>
  std::string expectation(const T&, const Rule& rule, const Items&...) const {
    if constexpr (std::is_same_v<Rule, schema::Flag>) {
      return "true or false";
    } else if constexpr (std::is_same_v<Rule, schema::OneOf>) {
      return describe_one_of(name_table<T>());
    } else {
      return describe(rule);
    }
  }

  template <class T>
  void get(const Json& value, T& group) {
    ObjectReader reader(value, problem_);
    schema::fields(reader, group);
    reader.finish();
  }
  void get(const Json& value, Op& op);

  template <class T, class Bound>
  requires std::is_integral_v<T>
  void get(const Json& value, T& member, const schema::Range<Bound>& range) {
    const bool fits_sign =
        value.is_number_unsigned() || (std::is_signed_v<Bound> && value.is_number_integer());
    // nlohmann keeps non-negative integers as unsigned; they may exceed a signed bound.
    const bool fits = fits_sign && (!std::is_signed_v<Bound> || !value.is_number_unsigned() ||
                                    value.get<uint64_t>() <= uint64_t(INT64_MAX));
    if (!fits) return problem_.report(describe(range), preview(value));
    const Bound wide = value.get<Bound>();
    if (wide < range.low || wide > range.high) {
      return problem_.report(describe(range), preview(value));
    }
    member = static_cast<T>(wide);
  }
  void get(const Json& value, RequestId& id, const schema::Range<uint64_t>& range) {
    get(value, id.value, range);
  }
  void get(const Json& value, double& member, const schema::Range<double>& range) {
    if (!value.is_number()) return problem_.report(describe(range), preview(value));
    member = value.get<double>();
    // An integer beyond 2^53 need not be a double.
    if (value.is_number_integer() && std::abs(member) > 9007199254740992.0) {
      problem_.report("an integer of at most 53 bits, or a number with a point", preview(value));
    }
  }
  void get(const Json& value, float& member, const schema::Range<double>& range) {
    double wide = 0;
    get(value, wide, range);
    if (problem_.found()) return;
    member = static_cast<float>(wide);
    if (double{member} != wide) {
      problem_.report(fmt::format("a number that float32 holds exactly (the nearest is {})",
                                  decimal(double{member})),
                      preview(value));
    }
  }
  void get(const Json& value, bool& member, const schema::Flag& rule) {
    if (!value.is_boolean()) return problem_.report(expectation(member, rule), preview(value));
    member = value.get<bool>();
  }
  template <class E>
  requires std::is_enum_v<E>
  void get(const Json& value, E& member, const schema::OneOf&) {
    const auto names = name_table<E>();
    for (size_t i = 0; value.is_string() && i < names.size(); ++i) {
      if (value.get_ref<const std::string&>() == names[i]) {
        member = static_cast<E>(i);
        return;
      }
    }
    problem_.report(describe_one_of(names), preview(value));
  }
  void get(const Json& value, std::string& member, const schema::Text& rule) {
    if (!value.is_string()) return problem_.report(describe(rule), preview(value));
    member = value.get<std::string>();
  }
  template <class T, class... Rules>
  void get(const Json& value, std::optional<T>& member, const Rules&... rules) {
    get(value, member.emplace(), rules...);
  }
  template <class T, class... Rules>
  void get(const Json& value, std::vector<T>& items, const schema::List& list,
           const Rules&... rules) {
    if (!value.is_array() || value.size() < list.items_min || value.size() > list.items_max) {
      return problem_.report(describe(list), preview(value));
    }
    items.resize(value.size());
    for (size_t i = 0; i < items.size() && !problem_.found(); ++i) {
      Problem::At at(problem_, i);
      get(value[i], items[i], rules...);
    }
  }

  Problem& problem_;
  const Json* object_ = nullptr;
  std::vector<const char*> asked_;
};

template <size_t index = 0>
Op default_operation(size_t wanted) {
  if constexpr (index + 1 < std::variant_size_v<Op>) {
    if (wanted != index) return default_operation<index + 1>(wanted);
  }
  return Op(std::in_place_index<index>);
}

void ObjectReader::get(const Json& value, Op& op) {
  ObjectReader reader(value, problem_);
  if (problem_.found()) return;
  const auto names = op_names();
  const auto tag = value.find("op");
  size_t index = names.size();
  if (tag != value.end() && tag->is_string()) {
    const auto& name = tag->get_ref<const std::string&>();
    index = std::find(names.begin(), names.end(), name) - names.begin();
  }
  if (index == names.size()) {
    Problem::At at(problem_, "op");
    return problem_.report(describe_one_of(names),
                           tag == value.end() ? "no such key" : preview(*tag));
  }
  op = default_operation(index);
  std::visit([&reader](auto& o) { schema::fields(reader, o); }, op);
  reader.finish("op");
}

Error in_file(std::string_view name, Error error) {
  error.message = fmt::format("{}: {}", name, error.message);
  return error;
}

}  // namespace

Result<Case> parse_case(std::string_view text, std::string_view name) {
  if (text.size() > limits::kFileBytesMax) {
    return bad_input(fmt::format("{}: expected at most {} bytes, got {}", name,
                                 limits::kFileBytesMax, text.size()));
  }
  const Result<Json> tree = parse_json(text);
  if (!tree.ok()) return in_file(name, tree.error());
  Problem problem;
  Case c;
  ObjectReader reader(*tree, problem);
  schema::fields(reader, c);
  reader.finish();
  if (problem.found()) return in_file(name, problem.error());
  if (const Result<void> checked = check_case(c); !checked.ok()) {
    return in_file(name, checked.error());
  }
  return c;
}

}  // namespace kv
