// Purpose: what the HTML report shows of a finding beyond its record: it is run once more.
// Contract: a finding that needs others before it, or that came once and not again, keeps its
// record and loses the pictures of what was observed. An error is one of the machine.
// Example: KV_ASSIGN_OR_RETURN(const auto shown, html_findings(bench, sink.records()));
#pragma once

#include <span>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/report/html.h"

namespace kv::cli {

Result<std::vector<HtmlFinding>> html_findings(const BenchOptions& bench,
                                               std::span<const Record> records);

}  // namespace kv::cli
