// `kverify triage`: a folder of findings, one line for each fault that they are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "harness/campaign/ledger_query.h"
#include "harness/certify/corpus.h"
#include "harness/certify/interrupt.h"
#include "harness/certify/reproduce.h"
#include "harness/cli/campaign_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/minimize/weight.h"

namespace kv::cli {
namespace {

constexpr const char* kGone = "does not fail";

struct Group {
  uint64_t cases = 0, runs = 0, failed = 0, history = 0;
  std::string first, smallest;
  Weight weight{};
};

Result<void> add(std::map<std::string, Group>& groups, const std::string& path, const Case& c,
                 const TriageOptions& options) {
  KV_ASSIGN_OR_RETURN(Reproducer reproducer, Reproducer::start(options.bench, path, c));
  KV_ASSIGN_OR_RETURN(const Reproduction r, reproducer.rate(c, options.runs));
  Group& group = groups[r.fingerprint ? r.fingerprint->text() : kGone];
  const Weight weight = weight_of(c);
  if (group.cases == 0) group.first = path;
  if (group.cases == 0 || weight < group.weight) {
    group.smallest = path;
    group.weight = weight;
  }
  ++group.cases;
  group.runs += r.runs;
  group.failed += r.failed;
  group.history += !c.exec.preceding.empty();
  return {};
}

std::string rate_text(const Group& g) {
  std::string text = g.failed == g.runs ? "always"
                     : g.failed == 0    ? "never"
                                        : fmt::format("in {} of {} runs", g.failed, g.runs);
  if (g.history == g.cases) return text + ", only after other cases";
  return text;
}

/// What cannot be told of: files whose bytes are no case, and those that a campaign set aside.
struct Unread {
  std::vector<std::string> reasons;  // one for each file that is still among the findings
  uint64_t set_aside = 0;

  std::string text() const {
    std::string text;
    for (const std::string& reason : reasons) text += "not read: " + reason + "\n";
    if (set_aside > 0)
      text +=
          fmt::format("{} damaged findings that the campaign set aside (*.damaged)\n", set_aside);
    return text;
  }
};

uint64_t count_set_aside(const std::string& folder) {
  uint64_t count = 0;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(CampaignFolder(folder).findings(), missing)) {
    count += entry.path().extension() == ".damaged";
  }
  return count;
}

std::string groups_text(const std::map<std::string, Group>& groups) {
  std::string text;
  for (const auto& [fault, g] : groups) {
    text += fmt::format("{:>6}  {}  [{}]\n        first {}\n        smallest {}\n", g.cases, fault,
                        rate_text(g), g.first, g.smallest);
  }
  return text;
}

nlohmann::ordered_json groups_json(const std::map<std::string, Group>& groups) {
  auto faults = nlohmann::ordered_json::array();
  for (const auto& [fault, g] : groups) {
    faults.push_back({{"fingerprint", fault},
                      {"cases", g.cases},
                      {"reproduces", rate_text(g)},
                      {"first", g.first},
                      {"smallest", g.smallest}});
  }
  return faults;
}

/// Nothing is run: what the campaign wrote is asked.
Result<ExitCode> ask_ledger(const TriageOptions& options, const Output& output) {
  KV_ASSIGN_OR_RETURN(const LedgerLines ledger,
                      read_ledger(CampaignFolder(options.folder).ledger()));
  KV_ASSIGN_OR_RETURN(const QueryRows rows, query_ledger(ledger, options.sql));
  output.say(query_text(rows));
  if (ledger.unreadable > 0)
    output.say(fmt::format("{} lines of the ledger could not be read\n", ledger.unreadable));
  KV_RETURN_IF_ERROR(output.finish({{"kverify", kVersion},
                                    {"command", "triage"},
                                    {"sql", options.sql},
                                    {"columns", rows.columns},
                                    {"rows", rows.rows},
                                    {"unreadable_lines", ledger.unreadable}}));
  return ExitCode::kPass;
}

}  // namespace

Result<ExitCode> triage(const TriageOptions& options) {
  const Output output(options.json_path);
  if (!options.sql.empty()) return ask_ledger(options, output);
  KV_ASSIGN_OR_RETURN(const std::vector<std::string> files, stored_findings(options.folder));
  std::map<std::string, Group> groups;
  Unread unread{.reasons = {}, .set_aside = count_set_aside(options.folder)};
  Progress progress;
  for (size_t i = 0; i < files.size() && !interrupted(); ++i) {
    progress.show(fmt::format("{} of {} findings, {} faults", i, files.size(), groups.size()));
    const auto c = load_checked_case(files[i]);
    if (!c.ok()) {
      unread.reasons.push_back(c.error().message);
      continue;
    }
    KV_RETURN_IF_ERROR(add(groups, files[i], *c, options));
  }
  progress.clear();
  output.say(fmt::format("{} findings, {} faults as far as known\n", files.size(),
                         groups.size() - groups.count(kGone)) +
             groups_text(groups) + unread.text());
  KV_RETURN_IF_ERROR(output.finish({{"kverify", kVersion},
                                    {"command", "triage"},
                                    {"findings", files.size()},
                                    {"faults", groups_json(groups)},
                                    {"not_read", unread.reasons},
                                    {"set_aside", unread.set_aside}}));
  const bool any =
      std::any_of(groups.begin(), groups.end(), [](const auto& g) { return g.second.failed > 0; });
  const ExitCode code = any ? ExitCode::kFailed : ExitCode::kPass;
  return unread.reasons.empty() ? code : worst(code, ExitCode::kBadInput);
}

}  // namespace kv::cli
