// Purpose: the findings of a whole program, as text for a person.
// Contract: deterministic: no times, no host addresses. Each finding says what, where in the
// source, which thread, and how often.
// Example:  KV_SIMT_REPORT=- ./program     writes it to standard error when the program ends
#pragma once

#include <string>

#include "harness/simt/control/kv_simt_control.h"
#include "harness/simt/device.h"

namespace kv::simt::cudart {

class Runtime;

std::string describe(const kv_simt_finding& finding);
std::string report(const Device& device);
/// The same for programs, of this process alone; each finding with its text, and whether the time
/// limit was met.
std::string report_json(const Runtime& runtime);
/// A report in the file of KV_SIMT_REPORT_JSON that says only why the process cannot run.
bool write_refusal(const std::string& path, const std::string& sentence, int status);
/// Brings the file of KV_SIMT_REPORT_JSON up to date, if there is something new to say: a process
/// that dies leaves what was found.
void checkpoint_report(Runtime& runtime);

}  // namespace kv::simt::cudart
