// The families of relations (harness/relation) over our own library, driven three ways. Each says
// itself what it finds; planted bugs are in corpus/mutants.
#include <filesystem>
#include <map>

#include "harness/certify/corpus.h"
#include "harness/certify/examine.h"
#include "harness/core/philox.h"
#include "harness/relation/draw_related.h"
#include "harness/relation/relation.h"
#include "properties/gen/cases.h"

namespace kv::props {
namespace {

Examined examine(Case c) {
  static Result<Examiner> examiner =
      Examiner::start({.plugin_path = KV_BUILD_DIR "/lib/libkvattn_plugin.so",
                       .executable = KV_BUILD_DIR "/bin/kverify"});
  KV_CHECK(examiner.ok(), "the worker starts");
  KV_CHECK(examiner->submit(std::move(c)).ok(), "the case is lawful");
  Result<Examined> examined = examiner->next();
  KV_CHECK(examined.ok(), "the worker answers");
  return *std::move(examined);
}

bool holds(const Verdict& verdict) {
  return verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kVacuous ||
         verdict.outcome == Outcome::kUnsupported;
}

/// The families that were held by one driver, each so often.
using Held = std::map<std::string_view, size_t>;

void expect_all(const Held& held) {
  for (const Relation& relation : relations()) {
    const auto found = held.find(relation.name);
    EXPECT_GE(found == held.end() ? 0 : found->second, 2u) << relation.name;
  }
}

// RapidCheck shrinks the choices of what does not hold.
TEST(Family, EachHoldsForWhatRapidCheckChooses) {
  Held held;
  for (const Relation& relation : relations()) {
    const bool holds_always = rc::check(std::string(relation.name), [&] {
      const Case c = *cases_of(relation);
      held[relation.name] += !c.exec.relation.empty();
      const Verdict verdict = examine(c).verdict;
      if (!holds(verdict)) RC_FAIL(verdict.message);
    });
    EXPECT_TRUE(holds_always) << relation.name;
  }
  expect_all(held);
}

TEST(Family, EachHoldsForBytes) {
  Held held;
  for (size_t i = 0; i < 4 * relations().size(); ++i) {
    const Relation& relation = relations()[i % relations().size()];
    std::vector<uint8_t> bytes(600);
    for (size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<uint8_t>(Philox{11}.word(i, b));
    BytesSource choices(bytes);
    const Case c = draw_of_family(choices, relation);
    held[relation.name] += !c.exec.relation.empty();
    const Verdict verdict = examine(c).verdict;
    EXPECT_TRUE(holds(verdict)) << i << ", " << relation.name << ": " << verdict.message;
  }
  expect_all(held);
}

TEST(Family, EachHoldsForEverySeedOfTheCorpus) {
  Held held;
  for (const std::string& path : corpus_files(KV_SOURCE_DIR "/corpus")) {
    const Case c = load_checked_case(path).value();
    for (const Relation& relation : relations()) {
      Case related = c;
      related.exec.relation = relation.name;
      const auto image = image_of(related);
      if (!image.ok() || !image->has_value()) continue;
      ++held[relation.name];
      const Verdict verdict = examine(std::move(related)).verdict;
      EXPECT_TRUE(holds(verdict)) << path << ", " << relation.name << ": " << verdict.message;
    }
  }
  expect_all(held);
}

}  // namespace
}  // namespace kv::props
