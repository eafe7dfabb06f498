#include "harness/case/json_tree.h"

#include <fmt/format.h>

#include <vector>

#include "harness/case/limits.h"
#include "harness/case/problem.h"

namespace kv {
namespace {

// At most `bytes_max` bytes, printable ASCII only: a hostile file cannot write to the terminal.
std::string printable(std::string_view text, size_t bytes_max) {
  std::string out(text.substr(0, bytes_max));
  for (char& c : out) {
    if (c < 0x20 || c >= 0x7F) c = '?';
  }
  return out;
}

constexpr size_t kMembersUsual = 16;

// Receives nlohmann's parse events and builds the tree, so that limits and duplicate keys are
// noticed while parsing. Returning false stops the parser.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(size_t members_max) : members_max_(members_max) {}

  Json root;
  std::string message;

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
  // nlohmann reads an integer beyond 64 bits as a double: it can then only be a real number.
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Json& object = *open_.back();
    if (object.contains(name)) return fail("duplicate key " + in_quotes(name));
    if (object.size() >= members_max_) {
      return fail(fmt::format("an object of more than {} members", members_max_));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    message = printable(what, 240);
    return false;
  }

 private:
  bool fail(std::string what) {
    message = fmt::format("{}: {}", path(), what);
    return false;
  }

  // Of the innermost open container, in the notation of Problem.
  std::string path() const {
    std::string path;
    for (size_t depth = 0; depth + 1 < open_.size(); ++depth) path += last_step(*open_[depth]);
    if (path.starts_with('.')) path.erase(0, 1);
    return path.empty() ? "the document" : path;
  }

  // How the last value of a container, in which the next one is open, is reached from it.
  static std::string last_step(const Json& parent) {
    if (parent.is_array()) return fmt::format("[{}]", parent.size() - 1);
    return "." + printable(parent.get_ref<const Json::object_t&>().back().first, 60);
  }

  // Stores a value where the parser stands; nullptr when a limit is passed.
  Json* store(Json value) {
    if (++values_ > limits::kJsonValuesMax) {
      fail(fmt::format("more than {} values", limits::kJsonValuesMax));
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool put(Json value) { return store(std::move(value)) != nullptr; }

  bool open(Json container) {
    if (open_.size() >= limits::kJsonDepthMax) {
      return fail(fmt::format("nested deeper than {}", limits::kJsonDepthMax));
    }
    Json* const stored = store(std::move(container));
    if (stored == nullptr) return false;
    // Members cannot move when their list grows, they are copied.
    if (stored->is_object()) stored->get_ref<Json::object_t&>().reserve(kMembersUsual);
    open_.push_back(stored);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const size_t members_max_;
  // Pointers stay valid: a container grows only while it is the innermost.
  std::vector<Json*> open_;
  std::string key_;
  uint64_t values_ = 0;
};

}  // namespace

Result<Json> parse_json(std::string_view text, size_t members_max) {
  TreeBuilder builder(members_max);
  if (!Json::sax_parse(text, &builder)) return bad_input(builder.message);
  return std::move(builder.root);
}

std::string preview(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {} items", value.size());
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace kv
