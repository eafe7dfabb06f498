// Purpose: Ctrl-C ends a run cleanly: what was found so far is still reported.
// Contract: the first SIGINT or SIGTERM sets the flag, the second ends the program at once.
// Example: catch_interrupts(); while (!interrupted()) work();
#pragma once

#include <atomic>

namespace kv {

void catch_interrupts();
const std::atomic<bool>& interrupted();

/// What a shell expects of a program that was interrupted.
inline constexpr int kInterruptedStatus = 130;

}  // namespace kv
