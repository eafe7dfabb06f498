#include "harness/cli/baseline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "harness/case/offers.h"
#include "harness/case/text_file.h"
#include "harness/judge/fingerprint.h"
#include "harness/plugin/text.h"

namespace kv::cli {
namespace {

using Names = std::set<std::string>;

/// With fewer, what their cases have in common may be chance.
constexpr uint64_t kFindingsTelling = 8;
constexpr std::string_view kAs = "; as ", kIf = "; if ";

Names in_both(const Names& a, const Names& b) {
  Names both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

bool explains(const Names& line, const Names& finding) {
  return line.empty() ? finding.empty() : !in_both(line, finding).empty();
}

/// Words behind the last `mark` of the text, which is cut off there; none without it.
Names cut_words(std::string& text, std::string_view mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return {};
  std::istringstream words(text.substr(at + mark.size()));
  Names names;
  for (std::string word; words >> word;) names.insert(word);
  text.resize(at);
  return names;
}

bool is_name(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

std::set<std::string> telling_features(const Case& c) {
  static const FeatureSet plain = features_of(plain_case());
  const FeatureSet had = features_of(c);
  Names names;
  for (size_t i = 0; i < kFeatureCount; ++i)
    if (may_be_refused(Feature(i)) && had.has(Feature(i)) && !plain.has(Feature(i)))
      names.emplace(feature_name(Feature(i)));
  return names;
}

std::string hypothesis_family(const std::string& name) { return name.substr(0, name.find(':')); }

bool KnownFaults::knows(const Fault& fault) const {
  const auto found = lines_.find(fault.fingerprint);
  if (found == lines_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Line& line) {
    if (line.is_coarse) return true;
    const bool all = std::includes(fault.features.begin(), fault.features.end(),
                                   line.features.begin(), line.features.end());
    return explains(line.names, fault.names) && (all || !line.names.empty());
  });
}

void KnownFaults::add(const Fault& fault) {
  std::vector<Line>& lines = lines_[fault.fingerprint];
  for (Line& line : lines) {
    if (!explains(line.names, fault.names)) continue;
    line.names = in_both(line.names, fault.names);
    line.features = in_both(line.features, fault.features);
    ++line.findings;
    return;
  }
  lines.push_back({.features = fault.features, .names = fault.names, .findings = 1});
}

size_t KnownFaults::size() const {
  size_t size = 0;
  for (const auto& [fingerprint, lines] : lines_) size += lines.size();
  return size;
}

std::vector<std::string> KnownFaults::lines() const {
  std::vector<std::string> all;
  for (const auto& [fingerprint, lines] : lines_) {
    for (const Line& line : lines) {
      const bool tells = line.findings >= kFindingsTelling && !line.features.empty();
      if (!line.names.empty())
        all.push_back(fmt::format("{}{}{}", fingerprint, kAs, fmt::join(line.names, " ")));
      else
        all.push_back(fmt::format("{}{}", fingerprint,
                                  tells ? fmt::format("{}{}", kIf, fmt::join(line.features, " "))
                                  : line.is_coarse ? ""
                                                   : std::string(kIf) + "any"));
    }
  }
  return all;
}

std::optional<KnownFaults> KnownFaults::parse(const std::string& text) {
  std::string fingerprint = text;
  Line line;
  line.names = cut_words(fingerprint, kAs);
  line.features = cut_words(fingerprint, kIf);
  line.is_coarse = fingerprint == text;
  line.features.erase("any");
  for (const Names* names : {&line.names, &line.features})
    if (!std::all_of(names->begin(), names->end(), is_name)) return std::nullopt;
  if (!is_fingerprint_text(fingerprint)) return std::nullopt;
  KnownFaults one;
  one.lines_[fingerprint] = {line};
  return one;
}

KnownFaults& KnownFaults::operator+=(const KnownFaults& other) {
  for (const auto& [fingerprint, lines] : other.lines_) {
    std::vector<Line>& mine = lines_[fingerprint];
    mine.insert(mine.end(), lines.begin(), lines.end());
  }
  return *this;
}

Result<KnownFaults> read_baseline(const std::string& path) {
  constexpr uint64_t kBytesMax = 1 << 20;
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kBytesMax));
  KnownFaults faults;
  std::istringstream lines(text);
  uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const auto one = KnownFaults::parse(line);
    if (!one) {
      return bad_input(
          fmt::format("{}:{}: expected a fingerprint such as 'values output-value step "
                      "decode', got '{}'",
                      path, number, printable(line.substr(0, 60))));
    }
    faults += *one;
  }
  return faults;
}

Result<void> write_baseline(const std::string& path, const KnownFaults& faults) {
  std::string text =
      "# Known faults, one a line, with what would explain them or what all of their cases had:\n"
      "# kverify check --baseline THIS\n";
  for (const std::string& fault : faults.lines()) text += fault + "\n";
  return write_text_file(path, text);
}

}  // namespace kv::cli
