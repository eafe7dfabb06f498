// Purpose: inputs and kernels for the campaign, drawn at random.
// Contract: draws relations and extremes rather than averages: large and tiny scores, needles,
// cancelling and sparse values, ascending scores, holes in masks, every modifier.
#pragma once

#include "reference/soundness/draw.h"
#include "reference/soundness/simulated_kernel.h"
#include "reference/test_head.h"

namespace kv::reference {

struct CampaignSize {
  uint32_t slots_max = 256;
};

TestHead draw_head(Draw& draw, const CampaignSize& size);
/// A kernel that may run on the head's formats.
KernelConfig draw_kernel(Draw& draw, const TestHead& head);

}  // namespace kv::reference
