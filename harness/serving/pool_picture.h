// Purpose: a pool over the steps of a service, as one SVG picture: pages held, pages returned so
// far, fragmentation inside pages and, of an arena without pages, between runs.
// Contract: a pure function of the moments, integer coordinates, so the same bytes everywhere; at
// most kPictureColumns points of each curve, the highest of each column. Needs no other file.
// Example:  write_text_file("pool.svg", pool_svg(service.moments, {.page_slots = 16}));
#pragma once

#include <span>
#include <string>

#include "harness/serving/batching.h"

namespace kv {

inline constexpr uint64_t kPictureColumns = 720;

struct PictureOptions {
  std::string title;  // printable ASCII
  uint64_t page_slots = 16;
};
std::string pool_svg(std::span<const PoolMoment> moments, const PictureOptions& options);

/// Share of the slots of held pages that hold nothing, as block tables see it.
double internal_fragmentation(const PoolMoment& moment, uint64_t page_slots);

}  // namespace kv
