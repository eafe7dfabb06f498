// Purpose: the verdict of a case together with its image: both judged, then held against each
// other.
// Contract: the operations of the case come first, then those of the image; of a case that was
// judged before (BaseRun) only those of the image. A failure of either by itself is told of that
// one alone, without a relation; only a disagreement (stage metamorphic) names the relation.
// Without a relation it is Judge, and nothing is kept unless keep_run() asks for it.
// Example: see harness/certify/examine.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/judge/judge.h"
#include "harness/relation/relation.h"

namespace kv {

struct PairVerdict {
  Case c;  // of which the verdict is told
  Verdict verdict;
  bool is_image = false;  // c is the image
};

/// A case that was judged sound, and what its results were: enough for a case that differs from it
/// in its relation only.
struct BaseRun {
  Verdict verdict;
  std::vector<OpObservation> ops;  // results, and pages of the cache
  std::shared_ptr<EstimateMemo> estimates;
  uint64_t bytes() const;
};

class PairJudge {
 public:
  /// `image`: image_of(c).
  PairJudge(Case c, std::optional<Image> image, PluginFacts facts, JudgeOptions options);

  /// Instead of the case's own run. It must have an image.
  void take_run(BaseRun run);
  /// Before the first operation: run() will be asked for.
  void keep_run() {
    keeps_ = true;
    estimates_->take_notes(true);
  }
  /// After end_case(), of a case that is sound.
  std::optional<BaseRun> run() const;

  bool has_image() const { return image_.has_value(); }
  /// An operation of the case, or after end_case() of its image.
  void add(const OpObservation& observation);
  void end_case(const RunEnd& end);
  /// Ends the image, where there is one.
  PairVerdict finish(const RunEnd* image_end);

 private:
  void compare(PairVerdict& told) const;
  void begin_image();

  Case c_;
  std::optional<Image> image_;
  PluginFacts facts_;
  std::shared_ptr<EstimateMemo> estimates_ = std::make_shared<EstimateMemo>();
  JudgeOptions options_;
  std::optional<Judge> judge_;
  std::optional<Verdict> case_verdict_;
  std::vector<OpObservation> case_ops_, image_ops_;
  bool keeps_ = false;
};

}  // namespace kv
