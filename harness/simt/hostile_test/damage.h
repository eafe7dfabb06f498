// Purpose: damaged copies of PTX and of fat binaries.
// Contract: a pure function of the sources and the choices. PTX is damaged by its structure (an
// operand, a modifier, a number, a guard, a label, a line) more often than by bytes, so that many
// copies get past the parser.
// Example:  Choices choices(number); std::string text = damaged_text(texts, choices);
#pragma once

#include <string>
#include <vector>

#include "harness/simt/hostile_test/choices.h"
#include "harness/simt/hostile_test/sources.h"

namespace kv::simt::hostile {

std::string damaged_text(const std::vector<std::string>& sources, Choices& choices);
Bytes damaged_bytes(const std::vector<Bytes>& sources, Choices& choices);

}  // namespace kv::simt::hostile
