// The families of relations (harness/relation) over our own library, driven three ways. Each says
// itself what it finds; planted bugs are in corpus/mutants.
#include <filesystem>

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

// Kills what corpus/mutants lists for each relation; RapidCheck shrinks the choices.
RC_GTEST_PROP(Family, HoldsForWhatRapidCheckChooses, ()) {
  const Case c = *related_cases();
  const Verdict verdict = examine(c).verdict;
  if (!holds(verdict)) RC_FAIL(verdict.message);
}

TEST(Family, HoldsForBytes) {
  for (uint64_t i = 0; i < 40; ++i) {
    std::vector<uint8_t> bytes(300);
    for (size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<uint8_t>(Philox{11}.word(i, b));
    BytesSource choices(bytes);
    const Verdict verdict = examine(draw_related(choices)).verdict;
    EXPECT_TRUE(holds(verdict)) << i << ": " << verdict.message;
  }
}

TEST(Family, EveryRelationHoldsForEverySeedOfTheCorpus) {
  size_t pairs = 0;
  for (const std::string& path : corpus_files(KV_SOURCE_DIR "/corpus")) {
    const Case c = load_checked_case(path).value();
    for (const Relation& relation : relations()) {
      Case related = c;
      related.exec.relation = relation.name;
      const auto image = image_of(related);
      if (!image.ok() || !image->has_value()) continue;
      ++pairs;
      const Verdict verdict = examine(std::move(related)).verdict;
      EXPECT_TRUE(holds(verdict)) << path << ", " << relation.name << ": " << verdict.message;
    }
  }
  EXPECT_GE(pairs, 100u);
}

}  // namespace
}  // namespace kv::props
