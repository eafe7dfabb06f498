// Purpose: the part of a campaign that must survive the death of any of its processes: which case
// every worker is running, and which number comes next.
// Contract: a file of fixed size, mapped shared; the kernel keeps what was stored when a process
// dies. claim(worker) gives numbers 0, 1, 2, ... each to one worker, and the worker's slot holds it
// before the counter moves, so that no number is lost; one may be run twice after a crash. What the
// slots of more workers than there are now left unfinished is claimed by those that there are. A
// slot also holds the text of the running case, as far as it fits.
// Example:
//   KV_ASSIGN_OR_RETURN(CampaignState state, CampaignState::open(path));
//   const uint64_t number = state.claim({.worker = 0, .workers = 2}); ... state.release(0);
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/result.h"

namespace kv {

inline constexpr uint32_t kCampaignJobsMax = 256;
inline constexpr uint32_t kSlotTextMax = 65536 - 64;

struct CampaignSlot {
  std::atomic<uint64_t> running;  // number of the running case + 1; 0: none
  std::atomic<uint64_t> done, findings, corpus;
  std::atomic<uint32_t> text_bytes;
  std::atomic<uint32_t> ready;  // process id of the worker that was last ready to run cases
  char text[kSlotTextMax];
};

/// One of the workers that a campaign has now, 0 to workers - 1.
struct CampaignWorker {
  uint32_t worker = 0, workers = 1;
};

class CampaignState {
 public:
  /// Makes the file where it is not there; a file of another size or kind is bad input.
  static Result<CampaignState> open(const std::string& path);
  CampaignState(CampaignState&& other) noexcept;
  CampaignState& operator=(CampaignState&& other) noexcept;
  ~CampaignState();

  /// What the worker left unfinished, or one that is gone, or the next number.
  uint64_t claim(CampaignWorker who);
  /// Is there something unfinished for claim()?
  bool is_waited_for(CampaignWorker who) const;
  std::optional<uint64_t> unfinished(uint32_t worker) const;
  void note_case(uint32_t worker, std::string_view text);
  /// The text of the running case, "" when it was too long.
  std::string running_case(uint32_t worker) const;
  void release(uint32_t worker);

  CampaignSlot& slot(uint32_t worker);
  uint64_t claimed() const;  // numbers given out so far
  uint64_t total(std::atomic<uint64_t> CampaignSlot::*counter) const;
  std::atomic<uint32_t>& stop();  // not 0: workers end after their case

 private:
  struct File;
  CampaignState() = default;
  /// The slot, of those that fall to this worker, in which a number stands.
  std::optional<uint32_t> left_behind(CampaignWorker who) const;
  File* file_ = nullptr;
};

}  // namespace kv
