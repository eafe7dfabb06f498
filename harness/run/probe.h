// Purpose: which features a plugin offers, and which kernel variant it plans for what, by asking
// it. Contract: calls supports() and plan() with small shapes and batches; no device work. A plugin
// that does not even offer the plain case is taken to offer everything: its reasons then stand in
// the report, case by case.
// Example: const OfferSet offered = probe_offers(*plugin);
#pragma once

#include <vector>

#include "harness/case/offers.h"
#include "harness/plugin/loader.h"
#include "harness/run/observation.h"

namespace kv {

OfferSet probe_offers(const LoadedPlugin& plugin);

/// For each of fp16, bf16 and fp32 queries with heads of 64, over a cache of the same and of 8-bit
/// codes, and each kind of batch.
std::vector<Dispatch> probe_dispatch(const LoadedPlugin& plugin);

}  // namespace kv
