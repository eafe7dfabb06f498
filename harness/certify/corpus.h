// Purpose: cases as files: those that are replayed first, and those that a finding leaves behind.
// Contract: files are listed in ascending order of path. A stored finding is one file (and, with
// history, a folder of the cases before it), named after its class and its content, so the same
// finding has the same name in every run.
#pragma once

#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/certify/examine.h"

namespace kv {

/// Where the trace of a history stands, beside its case; it is no case itself.
std::string trace_path(const std::string& case_path);

/// `root`/seeds/*.json and `root`/regression/*.json; none where a folder is missing.
std::vector<std::string> corpus_files(const std::string& root);

/// Does `root` hold seeds/ or regression/?
bool is_corpus(const std::string& root);

/// The cases of a folder; of a campaign's, those of its findings. None is bad input, but for a
/// campaign: it may have found nothing.
Result<std::vector<std::string>> stored_findings(const std::string& folder);

/// Reads a case, and checks that its inputs are those that its digest was taken of.
Result<Case> load_checked_case(const std::string& path);

/// The cases that `c`, read from `path`, names as preceding; their paths are relative to it.
Result<std::vector<Case>> load_preceding(const std::string& path, const Case& c);

/// Makes `folder` and those above it, where they are not there.
Result<void> make_folder(const std::string& folder);

/// Writes the case of a finding into `folder`, which is made; returns its path. The stored case
/// names its preceding ones.
Result<std::string> store_finding(const std::string& folder, Examined& examined);

}  // namespace kv
