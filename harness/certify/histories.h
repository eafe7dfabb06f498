// Purpose: histories for engines that own their cache: who serves them in a worker, and what is
// counted of them.
// Contract: the engine runs in a worker; the judge, in the parent, asks it operation by operation
// (history_examine.h).
// Example:  output.say(history_text(stats));
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/case/offers.h"
#include "harness/history/judge.h"
#include "harness/run/worker_loop.h"

namespace kv {

/// Of the steps with queries: outputs against the reference, where a campaign takes a sample.
inline constexpr double kCampaignValueSteps = 0.25;

/// History `number` of a campaign, with its twin, for an engine that offers such ways to store K
/// and V.
Case draw_engine_case(uint64_t seed, uint64_t number, const OfferSet& offered);

/// "3210 operations/s, "
std::string operations_per_second(const HistoryStats& s, double seconds);
std::string history_text(const HistoryStats& stats);
nlohmann::ordered_json history_json(const HistoryStats& stats);

/// What a worker answers kEngine frames with.
FrameServer serve_engine(const LoadedPlugin& plugin, const CudaRuntime& runtime);

}  // namespace kv
