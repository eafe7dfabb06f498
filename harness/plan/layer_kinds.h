// Purpose: what each layer of a model keeps of a request, as its config.json says it.
// Contract: the ways in which the families of models say it (lists of names, periods, flags, and
// what the family alone decides) are either understood or an error that names the member: a window
// or a layer without a K/V cache is never passed over.
// Example:  KV_ASSIGN_OR_RETURN(const LayerKinds kinds, read_layer_kinds(reader, "gemma2"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/plan/config_reader.h"
#include "harness/plan/kv_model.h"

namespace kv {

struct LayerKinds {
  std::vector<LayerGroup> groups;  // of the layers that have a K/V cache of their own
  uint32_t without_cache = 0;      // linear attention, state spaces, convolutions; or shared
};
Result<LayerKinds> read_layer_kinds(const ConfigReader& reader, const std::string& type);

}  // namespace kv
