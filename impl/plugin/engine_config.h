// Purpose: kv_engine_config in kvattn's terms.
// Contract: refuses what is no configuration, and as unsupported what kvattn's engine does not
// offer.
// Example:  StatusOr<ParsedConfig> parsed = engine_config(config);
#pragma once

#include "impl/plugin/engine_level.h"

namespace kvattn {

struct ParsedConfig {
  EngineConfig engine;
  AttentionShape shape;
  HeadInputs heads;  // of all layers, those of the draft model last
};
StatusOr<ParsedConfig> engine_config(const kv_engine_config& config);

/// The memory of the target's cache, or of the draft model's.
StatusOr<std::unique_ptr<Store>> make_store(const kv_engine_config& config,
                                            const ParsedConfig& parsed, bool draft);

SlotLayout layout_of(const AttentionShape& shape);

}  // namespace kvattn
