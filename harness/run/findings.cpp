#include "harness/run/findings.h"

#include <algorithm>
#include <string>

#include "harness/plugin/text.h"

namespace kv {
namespace {

DeviceFinding plain(const kv_simt_finding& f) {
  DeviceFinding plain;
  plain.kind = f.kind;
  plain.launch = f.launch;
  plain.kernel = printable_array(f.kernel);
  plain.instruction = printable_array(f.instruction);
  plain.source_file = printable_array(f.source_file);
  plain.inlined_at_file = printable_array(f.inlined_at_file);
  plain.message = printable_array(f.message);
  plain.ptx_line = f.ptx_line;
  plain.source_line = f.source_line;
  plain.inlined_at_line = f.inlined_at_line;
  std::copy(std::begin(f.block), std::end(f.block), plain.block);
  std::copy(std::begin(f.thread), std::end(f.thread), plain.thread);
  plain.address = f.address;
  plain.allocation_base = f.allocation_base;
  plain.allocation_bytes = f.allocation_bytes;
  plain.allocation_number = f.allocation_number;
  plain.access_bytes = f.access_bytes;
  plain.space = f.space;
  plain.repeats = f.repeats;
  return plain;
}

}  // namespace

std::vector<DeviceFinding> take_findings(const CudaRuntime& runtime) {
  std::vector<DeviceFinding> findings;
  if (runtime.control == nullptr) return findings;
  const uint64_t kept = runtime.control->finding_kept();
  for (uint64_t i = 0; i < kept; ++i) {
    kv_simt_finding finding = {};
    finding.struct_bytes = sizeof finding;
    if (runtime.control->finding(i, &finding) == 0) findings.push_back(plain(finding));
  }
  const uint64_t dropped = runtime.control->finding_count() - kept;
  if (dropped > 0 && !findings.empty()) {
    findings.back().not_kept = dropped;
    findings.back().message += " (" + std::to_string(dropped) + " more findings were not kept)";
  }
  if (kept > 0) runtime.control->clear_findings();
  return findings;
}

}  // namespace kv
