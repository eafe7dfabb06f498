// Purpose: what the double tier found for the heads of a case, for its image: most relations change
// neither the tokens that a row sees nor their bytes, and the estimate is half of what judging
// costs. Contract: of() gives the noted estimate when every input of it is equal, byte by byte, and
// else what `run` gives, noted while take_notes(true) and kBytesMax permit. Valid until the next
// of() of a memo that takes notes. Not thread safe. Example:  memo.take_notes(true); const auto& e
// = memo.of({shape, profile, true}, block, run);
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "harness/case/case.h"
#include "harness/run/observation.h"
#include "reference/attention.h"

namespace kv {

class EstimateMemo {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{4} << 20;

  /// What a profile is resolved from, and the options of the estimate.
  struct Setting {
    const Shape& shape;
    const DeclaredProfile& declared;
    bool rounded = false;
  };
  using Run = std::function<const reference::HeadEstimate&()>;

  void take_notes(bool yes) { takes_notes_ = yes; }
  const reference::HeadEstimate& of(const Setting& setting, const reference::HeadBlock& block,
                                    const Run& run);
  uint64_t bytes() const { return bytes_; }
  uint64_t hits() const { return hits_; }

 private:
  struct Note {
    Shape shape;
    DeclaredProfile declared;
    bool rounded = false;
    std::vector<std::byte> inputs;
    std::vector<double> numbers;  // that the estimate's rows point to
    reference::HeadEstimate estimate;
  };
  const Note* find(const Setting& setting) const;
  void note(const Setting& setting, const reference::HeadBlock& block,
            const reference::HeadEstimate& estimate);

  bool takes_notes_ = false;
  std::deque<Note> notes_;
  std::vector<std::byte> inputs_;  // of the block that is asked for
  uint64_t bytes_ = 0, hits_ = 0;
};

}  // namespace kv
