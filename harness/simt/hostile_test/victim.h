// Purpose: one damaged program on the CPU device.
// Contract: loads the module, launches each of its kernels with pointers and small numbers as
// parameters, under all checks and a budget of instructions, and leaves the device empty.
#pragma once

#include <string>

#include "harness/simt/hostile_test/choices.h"

namespace kv::simt::hostile {

/// How it ended, or how the first kernel did that got furthest.
enum class Fate { kRefused, kNotRunnable, kRan };

/// An error without a sentence, or with an endless one, is a test failure.
Fate run_text(std::string text, Choices& choices);

}  // namespace kv::simt::hostile
