// Purpose: findings in the formats that continuous integration reads: JUnit XML, SARIF 2.1.0,
// GitHub workflow commands. Contract: pure functions of the records, in their order; control
// characters and markup in texts of the code under test are escaped. A place in the user's source
// is given where the device knows it, else the case file stands for it. Example:
// write_text_file(path, junit_xml(summary, records));
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "harness/report/record.h"
#include "harness/report/summary.h"

namespace kv {

/// One test case for each distinct fault, and one for all the cases without one.
std::string junit_xml(const RunSummary& summary, std::span<const Record> records);

nlohmann::ordered_json sarif_json(std::span<const Record> records, const std::string& version);

/// "::error file=kernel.cu,line=7,title=device:race::message"
std::string github_annotation(const Record& record);

}  // namespace kv
