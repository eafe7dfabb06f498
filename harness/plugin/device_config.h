// Purpose: changes what the CPU device is configured for, and leaves the rest as it is.
// Contract: `change` is given the configuration in force. An error of the environment when the
// device refuses the new one; `what` says what could not be done. Nothing happens on a GPU, whose
// runtime has no such table.
// Example:  change_device(control, "cannot profile", [](kv_simt_config& c) { c.collect |= bits; });
#pragma once

#include "harness/core/result.h"
#include "harness/plugin/text.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {

template <class Change>
Result<void> change_device(const kv_simt_control_v1* control, const char* what, Change change) {
  if (control == nullptr) return {};
  kv_simt_config config = {};
  config.struct_bytes = sizeof config;
  bool ok = control->get_config(&config) == 0;
  change(config);
  ok = ok && control->configure(&config) == 0;
  if (ok) return {};
  return environment_error(std::string(what) + ": " + printable(control->last_error()));
}

}  // namespace kv
