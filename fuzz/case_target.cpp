#include "fuzz/case_target.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "fuzz/finding.h"
#include "fuzz/mutate.h"
#include "fuzz/parts.h"
#include "harness/case/json.h"
#include "harness/case/text_file.h"
#include "harness/case/timeline.h"
#include "harness/core/freed_memory.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace kv::fuzzing {
namespace {

constexpr uint64_t kInputBytesMax = 1 << 20;

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
bool is_json(std::span<const uint8_t> bytes) { return !bytes.empty() && bytes[0] == '{'; }

std::optional<Case> decoded(std::span<const uint8_t> bytes) {
  if (!is_json(bytes)) {
    const Chunks chunks = split(bytes);
    PartedSource choices(chunks);
    return case_target().draw(choices);
  }
  auto c = parse_case(text_of(bytes), "input");
  if (!c.ok() || !case_target().fits(*c)) return std::nullopt;
  return std::move(c).value();
}

void run_input(std::span<const uint8_t> bytes) {
  begin_input(bytes);
  const std::optional<Case> c = decoded(bytes);
  if (!c) return;
  running_case(&*c);
  case_target().run(*c);
  running_case(nullptr);
}

struct Options {
  uint64_t unguided = 0, seed = 1;
  std::string decode;
};

[[noreturn]] void refuse(const std::string& message) {
  std::fputs(("fuzz: " + message + "\n").c_str(), stderr);
  std::_Exit(2);
}

uint64_t number_of(std::string_view text, std::string_view option) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  refuse(fmt::format("{}: expected a number, got '{}'", option, text));
}

/// True when the word is one of ours.
bool take(std::string_view word, Options& options) {
  constexpr std::string_view kPrefix = "-artifact_prefix=", kLimit = "--kv_limit_";
  if (word.starts_with(kPrefix)) set_finding_prefix(std::string(word.substr(kPrefix.size())));
  if (!word.starts_with("--kv_")) return false;
  const size_t equals = word.find('=');
  if (equals == word.npos) refuse(fmt::format("{}: expected a value behind '='", word));
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "--kv_decode") return options.decode = value, true;
  const uint64_t number = number_of(value, name);
  if (name == "--kv_unguided") return options.unguided = number, true;
  if (name == "--kv_seed") return options.seed = number, true;
  const bool known =
      name.starts_with(kLimit) && number <= 0xffffffff &&
      case_target().set_limit(name.substr(kLimit.size()), static_cast<uint32_t>(number));
  if (!known) refuse(fmt::format("{}: no such option, or out of range", word));
  return true;
}

void print_case(const std::string& path) {
  const auto bytes = read_text_file(path, kInputBytesMax);
  if (!bytes.ok()) refuse(bytes.error().message);
  const auto c = decoded({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
  if (!c) refuse(path + ": no case, or none that this target runs");
  std::fputs(case_to_json(*c).c_str(), stdout);
}

void run_unguided(const Options& options) {
  for (uint64_t i = 0; i < options.unguided; ++i) {
    PhiloxSource choices(options.seed, i);
    const Case c = case_target().draw(choices);
    begin_input({});
    running_case(&c);
    case_target().run(c);
  }
  std::fputs(fmt::format("fuzz: {} cases, nothing found\n", inputs()).c_str(), stderr);
}

/// libFuzzer's bookkeeping of rare features costs a third of the time with as many as pairs of
/// relations give, and novelty() already asks for what is rare. A word of the caller's comes later.
char g_no_entropic[] = "-entropic=0";

int initialize(int* count, char*** words) {
  Options options;
  static std::vector<char*> kept;
  kept = {(*words)[0], g_no_entropic};
  for (int i = 1; i < *count; ++i) {
    if (!take((*words)[i], options)) kept.push_back((*words)[i]);
  }
  *count = static_cast<int>(kept.size());
  kept.push_back(nullptr);
  *words = kept.data();
  case_target().open();
  const bool is_done = options.unguided > 0 || !options.decode.empty();
  if (options.unguided > 0) run_unguided(options);
  if (!options.decode.empty()) print_case(options.decode);
  std::fflush(stdout);
  if (is_done) std::_Exit(0);
  return 0;
}

size_t put(std::string_view text, uint8_t* data, size_t size_max) {
  if (text.size() > size_max) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
size_t put(const Chunks& chunks, uint8_t* data, size_t size_max) {
  const auto bytes = join(chunks);
  return put(text_of(bytes), data, size_max);
}

/// A case of JSON with something taken from `other`; 0 bytes when that gives none.
size_t put_mutated(std::span<const uint8_t> parent, const Case& other, uint8_t* data,
                   size_t size_max, uint32_t seed) {
  const auto c = parse_case(text_of(parent), "input");
  if (!c.ok()) return 0;
  const auto child = mutated_case(*c, other, seed);
  return child ? put(case_to_json(*child), data, size_max) : 0;
}

double novelty_of(const Chunks& chunks) {
  PartedSource choices(chunks);
  return case_target().novelty(case_target().draw(choices));
}

/// Of 1, 4 or 16 children the one that promises most: to draw a case costs a hundredth of running
/// it. Not always of many: what is seldom would never stand beside what is common.
template <class Make>
Chunks newest(uint32_t seed, Make make) {
  constexpr uint32_t kChildren[] = {1, 4, 16};
  const uint32_t children = kChildren[seed % std::size(kChildren)];
  Chunks best = make(seed);
  if (case_target().novelty == nullptr || children == 1) return best;
  double most = novelty_of(best);
  for (uint32_t i = 1; i < children; ++i) {
    Chunks child = make(seed + i * 0x9e3779b9U);
    const double novelty = novelty_of(child);
    if (novelty <= most) continue;
    most = novelty;
    best = std::move(child);
  }
  return best;
}

Chunks changed(const Chunks& parent, uint32_t seed) {
  Chunks child = case_target().draws_anew ? Chunks() : parent;
  mutate(child, seed, LLVMFuzzerMutate, case_target().operations);
  return child;
}

Case fresh(uint32_t seed) {
  PhiloxSource choices(seed, 3);
  return case_target().draw(choices);
}

}  // namespace
}  // namespace kv::fuzzing

extern "C" {

int LLVMFuzzerInitialize(int* count, char*** words) {
  kv::keep_freed_memory();
  return kv::fuzzing::initialize(count, words);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kv::fuzzing::run_input({data, size});
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  using namespace kv::fuzzing;
  const std::span<const uint8_t> bytes(data, size);
  if (is_json(bytes)) {
    const size_t written = put_mutated(bytes, fresh(seed), data, size_max, seed);
    return written > 0 ? written : size;
  }
  const Chunks parent = split(bytes);
  const size_t written =
      put(newest(seed, [&](uint32_t one) { return changed(parent, one); }), data, size_max);
  return written > 0 ? written : size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t out_size_max, unsigned seed) {
  using namespace kv::fuzzing;
  const std::span<const uint8_t> a(data1, size1), b(data2, size2);
  size_t written = 0;
  if (is_json(a)) {
    if (const auto other = decoded(b)) written = put_mutated(a, *other, out, out_size_max, seed);
  } else if (!is_json(b)) {
    const Chunks first = split(a), second = split(b);
    const auto child = [&](uint32_t one) {
      return case_target().draws_anew ? changed({}, one) : crossed(first, second, one);
    };
    written = put(newest(seed, child), out, out_size_max);
  }
  return written > 0 ? written : put(text_of(a), out, out_size_max);
}
}
