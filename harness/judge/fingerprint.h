// Purpose: when are two findings the same fault, as far as their verdicts can tell?
// Contract: a fingerprint says which property failed, what the failure is called, in which kind of
// operation, which kernel variant ran, and, where the device named an instruction, in which kernel.
// It holds no length, no address and no template argument, so a case and its shrunken form share
// it. Exact and interval values are one property: which of the two decides depends on the data.
// One fault may have several fingerprints (a wrong value here, a NaN there), and two faults may
// share one: what is grouped by it is distinct as far as known.
// Example: if (fingerprint_of(c, verdict) == pinned) ...
#pragma once

#include <string>

#include "harness/case/case.h"
#include "harness/judge/verdict.h"

namespace kv {

struct Fingerprint {
  std::string property, failure_class, operation, variant, kernel;
  bool operator==(const Fingerprint&) const = default;
  auto operator<=>(const Fingerprint&) const = default;
  /// "values output-value step decode", for people and as a key.
  std::string text() const;
};

/// Whether a text may be a fingerprint's: a property and a failure class at least, printable.
bool is_fingerprint_text(const std::string& text);

/// Of a verdict that is a finding. The operation is that of the divergence, "" where there is none.
Fingerprint fingerprint_of(const Case& c, const Verdict& verdict);

/// What the device found that made the verdict a failure; findings that fail nothing may stand
/// before it. Null when something else decided.
const DeviceFinding* deciding_finding(const Verdict& verdict);

/// "void kvattn::attend_kernel<__half, 64>(Params)" without its arguments: "kvattn::attend_kernel".
std::string kernel_family(const std::string& kernel);

}  // namespace kv
