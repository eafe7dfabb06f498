#include "harness/simt/exec/launch.h"

#include <algorithm>

#include "harness/core/philox.h"
#include "harness/simt/exec/branching.h"
#include "harness/simt/exec/report.h"

namespace kv::simt {
namespace {

constexpr int64_t kTurn = 1 << 14;     // warp instructions of one warp in one turn
constexpr size_t kResidentMax = 1024;  // blocks resident of an ordinary launch
constexpr uint64_t kDefaultBudget = 2'000'000'000;
/// Slices in a row in which warps did nothing but read again a value that did not change.
constexpr uint64_t kIdleMax = 1'000'000;

/// A permutation of [0, n) without memory: a four-round Feistel network over the next even number
/// of bits, walked until the result is inside.
uint64_t permuted(uint64_t seed, uint64_t n, uint64_t k) {
  if (seed == 0 || n < 2) return k;
  uint32_t half = 1;
  while ((uint64_t{1} << (2 * half)) < n) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  const Philox philox{seed};
  do {
    uint64_t left = k >> half, right = k & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (philox.word(round, right) & mask);
      left = right;
      right = next;
    }
    k = left << half | right;
  } while (k >= n);
  return k;
}

/// "3", or "3 to 7"
std::string range_name(uint32_t first, uint32_t last) {
  return std::to_string(first) + (last > first ? " to " + std::to_string(last) : "");
}

class Grid {
 public:
  Grid(LaunchState& launch, uint32_t shared_bytes, bool cooperative, BlockPlaces& places)
      : launch_(launch), cold_(*launch.cold), shared_bytes_(shared_bytes), places_(places) {
    blocks_ = uint64_t{cold_.grid.x} * cold_.grid.y * cold_.grid.z;
    seed_ = cold_.config.schedule_seed;
    budget_ = cold_.config.instruction_budget ? cold_.config.instruction_budget : kDefaultBudget;
    limit_ = cooperative ? size_t(blocks_) : kResidentMax;
    wanted_ = cooperative ? size_t(blocks_) : 1;
  }

  LaunchStatus run() {
    if (seed_ != 0) wanted_ = std::max<size_t>(wanted_, 1 + draw() % 4);
    while (!over_) {
      admit();
      if (resident_.empty()) break;
      seed_ == 0 ? run_in_order() : run_at_random();
    }
    finish_counters();
    file_pending(cold_);
    return status_;
  }

 private:
  uint64_t draw() { return Philox{seed_}.word(cold_.number, step_++); }

  void admit() {
    while (resident_.size() < std::min(wanted_, limit_) && next_ < blocks_) {
      BlockPlace* place = nullptr;
      if (!free_.empty()) {
        place = free_.back();
        free_.pop_back();
      } else {
        if (used_ == places_.size()) places_.push_back(std::make_unique<BlockPlace>());
        place = places_[used_++].get();
      }
      place->prepare(launch_, shared_bytes_);
      place->start(permuted(seed_, blocks_, next_++));
      resident_.push_back(place);
      ++launch_.counters->blocks;
      launch_.counters->warps += place->warps();
    }
  }

  /// Runs one warp for at most `slice` instructions. False: the launch is over.
  bool run_one(BlockPlace& place, Warp& w, int64_t slice) {
    const auto left = int64_t(std::min<uint64_t>(budget_ - executed_, INT64_MAX));
    const uint64_t before = w.warp_instructions;
    w.slice = std::min(slice, left);
    run_warp(w);
    executed_ += w.warp_instructions - before;
    place.stopped(w);
    if (w.stop == Stop::kFault) return end(LaunchStatus::kFaulted);
    if (w.stop == Stop::kMisaligned) return end(LaunchStatus::kMisaligned);
    if (w.stop == Stop::kTrap) return end(LaunchStatus::kTrapped);
    if (w.stop == Stop::kAssert) return end(LaunchStatus::kAsserted);
    idle_slices_ = w.stop == Stop::kSlice && w.spins >= kSpins ? idle_slices_ + 1 : 0;
    if (idle_slices_ >= kIdleMax) {
      report_hang("every warp that is not at a barrier waits for a value that nobody changes");
      return end(LaunchStatus::kHung);
    }
    if (cold_.deadline && std::chrono::steady_clock::now() >= *cold_.deadline) {
      report_hang("the time limit is over");
      return end(LaunchStatus::kLate);
    }
    if (executed_ >= budget_ && !(w.stop == Stop::kDone && everything_done())) {
      report_hang("the instruction budget of " + std::to_string(budget_) +
                  " warp instructions is spent");
      return end(LaunchStatus::kHung);
    }
    return true;
  }

  bool everything_done() const {
    if (next_ < blocks_) return false;
    return std::all_of(resident_.begin(), resident_.end(),
                       [](const BlockPlace* p) { return p->finished(); });
  }

  bool end(LaunchStatus status) {
    status_ = status;
    over_ = true;
    return false;
  }

  /// A block whose warps all wait at barriers: nobody will ever come.
  bool stuck() {
    const bool checked = launch_.checks & KV_SIMT_CHECK_BARRIER;
    report_hang("every warp of a block waits at a barrier that not enough threads reach",
                checked ? KV_SIMT_KIND_BARRIER : KV_SIMT_KIND_HANG);
    return end(LaunchStatus::kHung);
  }

  /// Every resident block gets a turn: each warp up to kTurn instructions.
  void run_in_order() {
    now_ = resident_;
    for (BlockPlace* place : now_) {
      if (!turn(*place)) return;
      retire(place);
    }
    // Whoever is still here has had its turn and waits, perhaps for a block that is not here yet.
    if (!resident_.empty()) wanted_ = std::min(limit_, resident_.size() + 1);
  }

  bool turn(BlockPlace& place) {
    std::vector<int64_t>& left = left_;
    left.assign(place.warps(), kTurn);
    for (bool ran = true; ran;) {
      ran = false;
      for (uint32_t k = 0; k < place.warps(); ++k) {
        if (place.state(k) != WarpState::kReady || left[k] <= 0) continue;
        Warp& w = place.warp(k);
        const uint64_t before = w.warp_instructions;
        if (!run_one(place, w, left[k])) return false;
        left[k] -= int64_t(w.warp_instructions - before);
        if (w.stop == Stop::kSlice) left[k] = 0;
        ran = true;
      }
    }
    if (place.finished() || place.any_ready()) return true;
    return stuck();
  }

  void run_at_random() {
    size_t ready = 0;
    for (BlockPlace* place : resident_) {
      for (uint32_t k = 0; k < place->warps(); ++k) ready += place->state(k) == WarpState::kReady;
    }
    size_t pick = draw() % ready;
    // Mostly short slices, some long ones: neighbours interleave finely, far ones drift apart.
    const uint64_t random = draw();
    const int64_t slice =
        random % 8 == 0 ? int64_t(1 + random / 8 % 2000) : int64_t(1 + random / 8 % 60);
    for (BlockPlace* place : resident_) {
      for (uint32_t k = 0; k < place->warps(); ++k) {
        if (place->state(k) != WarpState::kReady || pick-- != 0) continue;
        Warp& w = place->warp(k);
        if (!run_one(*place, w, slice)) return;
        if (w.stop == Stop::kSlice && w.spins) ++idle_;
        if (place->finished()) {
          retire(place);
          idle_ = 0;
        } else if (!place->any_ready()) {
          stuck();
        } else if (idle_ > 64) {
          wanted_ = std::min(limit_, resident_.size() + 1);
          idle_ = 0;
        }
        return;
      }
    }
  }

  void retire(BlockPlace* place) {
    if (!place->finished()) return;
    launch_.counters->shared_bytes_peak =
        std::max<uint64_t>(launch_.counters->shared_bytes_peak, shared_bytes_);
    for (uint32_t k = 0; k < place->warps(); ++k) count(place->warp(k));
    resident_.erase(std::find(resident_.begin(), resident_.end(), place));
    free_.push_back(place);
  }

  void count(Warp& w) {
    launch_.counters->warp_instructions += w.warp_instructions;
    launch_.counters->thread_instructions += w.thread_instructions;
    w.warp_instructions = w.thread_instructions = 0;
  }

  void finish_counters() {
    for (BlockPlace* place : resident_) {
      for (uint32_t k = 0; k < place->warps(); ++k) count(place->warp(k));
    }
  }

  /// " waits at barrier 0, a.cu:3"
  static std::string position(BlockPlace& place, uint32_t warp) {
    Warp& w = place.warp(warp);
    const bool waits = place.state(warp) == WarpState::kWaiting;
    const ptx::Instruction* source = meta_of(w, at(w, waits ? w.pc - 1 : w.pc)).source;
    return (waits ? " waits at barrier " + std::to_string(w.barrier_id) + ", " : " is at ") +
           (source ? place_name(*source) : "its end");
  }

  /// Where every warp of the resident blocks is that has not ended: warps of a block at one place
  /// in one clause, and blocks in which it is the same in all. Cut where a finding has no more
  /// room.
  std::string positions() {
    std::vector<std::pair<std::string, std::vector<uint64_t>>> clauses;  // and their blocks
    for (BlockPlace* place : resident_) {
      std::string clause;
      for (uint32_t k = 0, last = 0; k < place->warps(); k = last + 1) {
        last = k;
        if (place->state(k) == WarpState::kDone) continue;
        const std::string where = position(*place, k);
        while (last + 1 < place->warps() && place->state(last + 1) != WarpState::kDone &&
               position(*place, last + 1) == where) {
          ++last;
        }
        clause += (clause.empty() ? " warp " : ", warp ") + range_name(k, last) + where;
      }
      if (clause.empty()) continue;
      if (clauses.empty() || clauses.back().first != clause) clauses.push_back({clause, {}});
      clauses.back().second.push_back(place->block().index);
    }
    std::string text;
    for (const auto& [clause, blocks] : clauses) {
      text += "; block " + std::to_string(blocks[0]);
      if (blocks.size() > 1) text += " and " + std::to_string(blocks.size() - 1) + " more like it:";
      text += clause;
    }
    return text;
  }

  Warp* first_alive() {
    for (BlockPlace* place : resident_) {
      for (uint32_t k = 0; k < place->warps(); ++k) {
        if (place->state(k) != WarpState::kDone) return &place->warp(k);
      }
    }
    return nullptr;
  }

  void report_hang(const std::string& why, uint32_t kind = KV_SIMT_KIND_HANG) {
    Warp* const first = first_alive();
    const std::string text = why + positions();
    if (!first) return;
    const Ins* i = at(*first, first->pc ? first->pc - 1 : 0);
    const auto lane = uint32_t(__builtin_ctz(first->active ? first->active : 1));
    if (fresh(*first, i, kind)) {
      file(*first, i, {.kind = kind, .lane = lane, .message = text});
    }
  }

  LaunchState& launch_;
  LaunchCold& cold_;
  uint32_t shared_bytes_;
  BlockPlaces& places_;
  uint64_t blocks_ = 0, next_ = 0, seed_ = 0, step_ = 0;
  uint64_t budget_ = 0, executed_ = 0, idle_slices_ = 0;
  size_t limit_ = 1, wanted_ = 1, used_ = 0, idle_ = 0;
  std::vector<BlockPlace*> resident_, free_, now_;
  std::vector<int64_t> left_;
  bool over_ = false;
  LaunchStatus status_ = LaunchStatus::kCompleted;
};

}  // namespace

Result<void> check_shape(const LaunchSpec& spec, const ptx::Function& kernel) {
  const std::string& name = kernel.name;
  const Dim3 g = spec.grid;
  const uint64_t threads = uint64_t{spec.block.x} * spec.block.y * spec.block.z;
  if (threads == 0 || threads > 1024 || spec.block.x > 1024 || spec.block.y > 1024 ||
      spec.block.z > 64) {
    return bad_input("kernel " + name + ": a block of " + std::to_string(threads) +
                     " threads; 1 to 1024 are possible");
  }
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535) {
    return bad_input("kernel " + name + ": a grid of " + std::to_string(g.x) + " x " +
                     std::to_string(g.y) + " x " + std::to_string(g.z) +
                     " blocks; at most 2147483647 x 65535 x 65535, none of them 0");
  }
  if (spec.parameters.size() != kernel.parameter_bytes) {
    return bad_input("kernel " + name + ": " + std::to_string(spec.parameters.size()) +
                     " bytes of parameters, expected " + std::to_string(kernel.parameter_bytes));
  }
  if (spec.cooperative && uint64_t{g.x} * g.y * g.z > 65536) {
    return bad_input("kernel " + name + ": a cooperative grid of more than 65536 blocks");
  }
  return {};
}

LaunchStatus run_grid(LaunchState& launch, uint32_t shared_bytes, bool cooperative,
                      BlockPlaces& places) {
  return Grid(launch, shared_bytes, cooperative, places).run();
}

}  // namespace kv::simt
