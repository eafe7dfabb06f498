// Purpose: how much a run has cost, whatever else the machine does.
// Contract: processor time of this process, of its children that have ended, and of those that run
// now. Never part of a result. Example: const bool late = processor_seconds() >= 120;
#pragma once

namespace kv::cli {

double processor_seconds();

}  // namespace kv::cli
