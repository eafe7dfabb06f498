// Purpose: which axes a plugin offers, by asking it.
// Contract: calls supports(), and plan() for split sizes, with the shapes of axis.h; no device
// work. A plugin that does not even offer the plain case is taken to offer everything: its reasons
// then stand in the report, case by case. Example: const AxisSet offered = probe_axes(*plugin);
#pragma once

#include "harness/case/axis.h"
#include "harness/plugin/loader.h"

namespace kv {

AxisSet probe_axes(const LoadedPlugin& plugin);

}  // namespace kv
