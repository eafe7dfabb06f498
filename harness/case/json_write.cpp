#include "harness/case/json.h"
#include "harness/case/json_tree.h"
#include "harness/case/names.h"
#include "harness/case/problem.h"
#include "harness/case/schema.h"
#include "harness/core/check.h"

namespace kv {
namespace {

// Walks the schema and appends to one string.
class Writer {
 public:
  explicit Writer(std::string& out, std::string_view separator = ", ")
      : out_(out), separator_(separator) {}

  template <class T, class... Rules>
  void field(const char* name, const T& member, const Rules&... rules) {
    if (!first_) out_ += separator_;
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\": ";
    put(member, rules...);
  }

  template <class T, class... Rules>
  void optional(const char* name, const T& member, const Rules&... rules) {
    if (member != T{}) field(name, member, rules...);
  }

 private:
  template <class T>
  void put(const T& group) {
    out_ += '{';
    Writer writer(out_);
    schema::fields(writer, group);
    out_ += '}';
  }
  void put(const Op& op) {
    out_ += "{\"op\": \"";
    out_ += op_name(op);
    out_ += '"';
    Writer writer(out_);
    writer.first_ = false;
    std::visit([&writer](const auto& o) { schema::fields(writer, o); }, op);
    out_ += '}';
  }
  // One operation on a line: a diff of two cases shows operations.
  void put(const std::vector<Op>& ops, const schema::List&) {
    out_ += '[';
    for (size_t i = 0; i < ops.size(); ++i) {
      out_ += i == 0 ? "\n    " : ",\n    ";
      put(ops[i]);
    }
    out_ += ops.empty() ? "]" : "\n  ]";
  }
  template <class T, class Bound>
  requires std::is_integral_v<T>
  void put(T value, const schema::Range<Bound>&) { out_ += std::to_string(value); }
  template <class T>
  requires std::is_floating_point_v<T>
  void put(T value, const schema::Range<double>&) { out_ += decimal(double{value}); }
  void put(RequestId id, const schema::Range<uint64_t>& range) { put(id.value, range); }
  void put(bool value, const schema::Flag&) { out_ += value ? "true" : "false"; }
  template <class E>
  requires std::is_enum_v<E>
  void put(E value, const schema::OneOf&) {
    out_ += '"';
    out_ += name_of(value);
    out_ += '"';
  }
  void put(const std::string& text, const schema::Text&) { out_ += Json(text).dump(); }
  template <class T, class... Rules>
  void put(const std::optional<T>& value, const Rules&... rules) {
    put(*value, rules...);
  }
  template <class T, class... Rules>
  void put(const std::vector<T>& items, const schema::List&, const Rules&... rules) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      put(items[i], rules...);
    }
    out_ += ']';
  }

  std::string& out_;
  std::string_view separator_;
  bool first_ = true;
};

}  // namespace

std::string case_to_json(const Case& c) {
  std::string out = "{\n  ";
  Writer writer(out, ",\n  ");
  schema::fields(writer, c);
  out += "\n}\n";
  return out;
}

}  // namespace kv
