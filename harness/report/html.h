// Purpose: findings as one HTML page with pictures, for a person, readable without a network.
// Contract: self-contained: no script, no link, no font; a policy in its head forbids all of them.
// A pure function of its arguments: what the code under test printed is left out. Foreign text is
// escaped wherever it stands. Of many findings the first kHtmlFindingsMax are drawn.
// Example: write_text_file(path, html_report({.title = "check"}, findings));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/judge/error_map.h"
#include "harness/report/html_pictures.h"
#include "harness/report/record.h"

namespace kv {

inline constexpr size_t kHtmlFindingsMax = 50;

struct HtmlFinding {
  Record record;
  ErrorMap errors;             // empty: not known
  std::string explanation;     // one sentence, or ""
  KernelMask kernel;           // of the explanation; empty: not known
  std::vector<Grid> pictures;  // of a history
};

struct HtmlHead {
  std::string title;    // what ran
  std::string version;  // of kverify
  std::string plugin;   // name and version
  std::string summary;  // text of several lines, or ""
};

std::string html_report(const HtmlHead& head, std::span<const HtmlFinding> findings);

/// The page's style sheet.
extern const char* const kHtmlStyle;

}  // namespace kv
