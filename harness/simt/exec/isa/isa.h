// Purpose: the namespace of code that is compiled once for each instruction set.
// Contract: everything in it is either forced inline or static, so that no function compiled for
// AVX2 can stand in for its portable twin. No standard library templates in these files.
#pragma once

#include "harness/simt/check/race_stamp.h"

#ifndef KV_ISA
#define KV_ISA base
#endif
