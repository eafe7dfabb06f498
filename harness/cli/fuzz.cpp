// `kverify fuzz`: the supervisor. Starts workers, starts those again that die, counts, ends in
// time.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "harness/campaign/file_lock.h"
#include "harness/campaign/ledger.h"
#include "harness/campaign/state.h"
#include "harness/case/text_file.h"
#include "harness/certify/corpus.h"
#include "harness/certify/interrupt.h"
#include "harness/cli/campaign_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/file_hash.h"
#include "harness/core/json_fields.h"

namespace kv::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kDeathsMax = 5;  // of one worker at one case: then the case is set aside

struct Worker {
  pid_t process = -1;
  uint64_t last_case = 0;  // number + 1 at its last death
  uint32_t deaths = 0;     // at that case
  uint32_t unready = 0;    // deaths in a row before it was ready to run a case
  bool ended = false;
};

class Supervisor {
 public:
  Supervisor(const FuzzOptions& options, CampaignState state, Ledger ledger)
      : options_(options),
        folder_(options.folder),
        state_(std::move(state)),
        ledger_(std::move(ledger)),
        workers_(options.jobs),
        started_(Clock::now()) {}
  ~Supervisor() {
    for (const Worker& w : workers_)
      if (w.process > 0) kill(w.process, SIGKILL), waitpid(w.process, nullptr, 0);
  }

  Result<void> run() {
    const uint64_t before = state_.total(&CampaignSlot::done);
    state_.stop() = 0;
    for (uint32_t i = 0; i < options_.jobs; ++i) KV_RETURN_IF_ERROR(start(i));
    while (running() > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (seconds() >= options_.minutes * 60 || interrupted()) state_.stop() = 1;
      for (uint32_t i = 0; i < options_.jobs; ++i) KV_RETURN_IF_ERROR(look_after(i));
      const uint64_t done = state_.total(&CampaignSlot::done);
      progress_.show(fmt::format(
          "{} cases, {:.1f}/s, {} new feature pairs, {} findings, {:.0f} s left", done,
          static_cast<double>(done - before) / seconds(), state_.total(&CampaignSlot::corpus),
          state_.total(&CampaignSlot::findings), options_.minutes * 60 - seconds()));
    }
    progress_.clear();
    return {};
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  CampaignState& state() { return state_; }

 private:
  uint32_t running() const {
    uint32_t count = 0;
    for (const Worker& w : workers_) count += !w.ended;
    return count;
  }

  Result<void> start(uint32_t index) {
    std::vector<std::string> words = {
        "kverify",        "fuzz",
        "--worker",       std::to_string(index),
        "--jobs",         std::to_string(options_.jobs),
        "--dir",          options_.folder,
        "--seed",         std::to_string(options_.seed),
        "--level",        options_.level,
        "--device",       device_name(options_.bench.device),
        "--call-seconds", fmt::format("{}", options_.bench.call_seconds)};
    const auto add = [&words](const char* name, const std::string& value) {
      words.insert(words.end(), {name, value});
    };
    if (options_.cases) add("--cases", std::to_string(*options_.cases));
    if (!options_.bench.plugin_path.empty()) add("--plugin", options_.bench.plugin_path);
    if (options_.bench.memory_mib > 0)
      add("--memory-mib", std::to_string(options_.bench.memory_mib));
    if (!options_.bench.checks.empty()) add("--checks", options_.bench.checks);
    if (!options_.bench.suppressions_path.empty())
      add("--suppress", options_.bench.suppressions_path);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    Worker& w = workers_[index];
    const pid_t supervisor = getpid();
    w.process = fork();
    if (w.process > 0) return {};
    if (w.process < 0) return environment_error(fmt::format("fork: {}", std::strerror(errno)));
    // A campaign without its supervisor has no limit. It may be gone already.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == supervisor) execv("/proc/self/exe", argv.data());
    _exit(127);
  }

  Result<void> look_after(uint32_t index) {
    Worker& w = workers_[index];
    int status = 0;
    if (w.ended || waitpid(w.process, &status, WNOHANG) != w.process) return {};
    const pid_t process = std::exchange(w.process, -1);
    const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (clean || state_.stop() != 0) {
      w.ended = true;
      return {};
    }
    const bool ready = state_.slot(index).ready == static_cast<uint32_t>(process);
    KV_RETURN_IF_ERROR(ready ? note_death(index, status) : note_unready(index, status));
    return start(index);
  }

  // No case is to blame, whichever stands in the slot since an earlier start. What a worker says
  // itself it will say again; who was killed may have stood in the way of the machine's memory.
  Result<void> note_unready(uint32_t index, int status) {
    if (WIFEXITED(status)) {
      const bool bad = WEXITSTATUS(status) == static_cast<int>(ExitCode::kBadInput);
      return Error{bad ? ErrorKind::kBadInput : ErrorKind::kEnvironment,
                   fmt::format("worker {} ended with exit code {} before it could run a case; it "
                               "has said why above",
                               index, WEXITSTATUS(status))};
    }
    if (++workers_[index].unready >= kDeathsMax) {
      return environment_error(fmt::format(
          "worker {} was killed by signal {} ({}) before it could run a case, {} times in a row",
          index, WTERMSIG(status), strsignal(WTERMSIG(status)), kDeathsMax));
    }
    return ledger_.add({{"event", "worker_died"}, {"worker", index}, {"status", status}});
  }

  // A worker judges; the code under test runs in a process below it. Its death is nobody's finding,
  // but the case is kept: it killed kverify itself.
  Result<void> note_death(uint32_t index, int status) {
    Worker& w = workers_[index];
    const uint64_t number = state_.unfinished(index).value_or(0);
    w.deaths = w.last_case == number + 1 ? w.deaths + 1 : 1;
    w.last_case = number + 1;
    w.unready = 0;
    nlohmann::ordered_json line = {
        {"event", "worker_died"}, {"worker", index}, {"case", number}, {"status", status}};
    if (w.deaths >= kDeathsMax) {
      const std::string path = fmt::format("{}/killed-worker-{}.json", folder_.corpus(), number);
      KV_RETURN_IF_ERROR(make_folder(folder_.corpus()));
      KV_RETURN_IF_ERROR(write_text_file(path, state_.running_case(index)));
      line["set_aside"] = path.substr(folder_.root.size() + 1);
      state_.release(index);
    }
    return ledger_.add(line);
  }

  const FuzzOptions& options_;
  const CampaignFolder folder_;
  CampaignState state_;
  Ledger ledger_;
  std::vector<Worker> workers_;
  Progress progress_;
  Clock::time_point started_;
};

// What a resumed campaign must have in common with its first start.
Result<void> pin_settings(const FuzzOptions& options, const CampaignFolder& folder) {
  // A case is drawn for what the plugin offers, by the generator of this program.
  const std::string path =
      options.bench.plugin_path.empty() ? default_plugin_path() : options.bench.plugin_path;
  KV_ASSIGN_OR_RETURN(const std::string plugin, hash_of_file(path));
  KV_ASSIGN_OR_RETURN(const std::string kverify, hash_of_file("/proc/self/exe"));
  const nlohmann::ordered_json settings = {{"kverify", kverify},
                                           {"plugin", plugin},
                                           {"seed", options.seed},
                                           {"device", device_name(options.bench.device)},
                                           {"level", options.level}};
  const std::string text = json_text(settings, 2) + "\n";
  std::error_code error;
  if (!std::filesystem::exists(folder.settings(), error))
    return write_text_file(folder.settings(), text);
  KV_ASSIGN_OR_RETURN(const std::string before, read_text_file(folder.settings(), 1 << 16));
  if (before == text) return {};
  return bad_input(fmt::format("{}: expected the settings of this run, {}got {}", folder.settings(),
                               text, before));
}

// Cases are written whole or not at all; what a disk has damaged must not count as a finding.
Result<uint64_t> set_damaged_aside(const CampaignFolder& folder) {
  uint64_t damaged = 0;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder.findings(), missing)) {
    if (entry.path().extension() != ".json" || load_checked_case(entry.path()).ok()) continue;
    std::error_code error;
    std::filesystem::rename(entry.path(), entry.path().string() + ".damaged", error);
    if (error) return environment_error(entry.path().string() + ": " + error.message());
    ++damaged;
  }
  return damaged;
}

struct Totals {
  uint64_t cases = 0, deaths = 0, unreadable = 0;
  std::map<std::string, uint64_t> outcomes, faults;
};

Result<Totals> totals_of(const CampaignFolder& folder) {
  KV_ASSIGN_OR_RETURN(const LedgerLines ledger, read_ledger(folder.ledger()));
  Totals t;
  t.unreadable = ledger.unreadable;
  std::map<uint64_t, const nlohmann::json*> cases;  // a case may have run twice
  for (const auto& line : ledger.lines) {
    const std::string event = text_field(line, "event");
    if (event == "case") cases[number_field(line, "case")] = &line;
    t.deaths += event == "worker_died";
  }
  for (const auto& [number, line] : cases) {
    ++t.cases;
    ++t.outcomes[text_field(*line, "outcome", "?")];
    if (line->contains("fingerprint")) ++t.faults[text_field(*line, "fingerprint", "?")];
  }
  return t;
}

ExitCode exit_code_of(const Totals& t) {
  const auto count = [&](const char* name) {
    const auto found = t.outcomes.find(name);
    return found == t.outcomes.end() ? 0 : found->second;
  };
  ExitCode code = ExitCode::kPass;
  if (count("error") > 0) code = worst(code, ExitCode::kEnvironment);
  if (count("fail") > 0) code = worst(code, ExitCode::kFailed);
  if (count("nondeterministic") > 0) code = worst(code, ExitCode::kNondeterministic);
  if (code != ExitCode::kPass || count("pass") > 0) return code;
  return t.cases > 0 && count("unsupported") == t.cases ? ExitCode::kUnsupported
                                                        : ExitCode::kVacuous;
}

}  // namespace

Result<ExitCode> fuzz(const FuzzOptions& options) {
  const Output output(options.json_path);
  const CampaignFolder folder(options.folder);
  KV_RETURN_IF_ERROR(make_folder(folder.root));
  KV_ASSIGN_OR_RETURN(const FileLock lock, FileLock::take(folder.lock(), std::chrono::seconds(0)));
  KV_RETURN_IF_ERROR(pin_settings(options, folder));
  KV_ASSIGN_OR_RETURN(const uint64_t damaged, set_damaged_aside(folder));
  if (damaged > 0) output.say(fmt::format("{} damaged cases set aside\n", damaged));
  KV_ASSIGN_OR_RETURN(const uint64_t torn, mend_ledger(folder.ledger()));
  if (torn > 0)
    output.say(fmt::format("{}: {} bytes of an unfinished line removed\n", folder.ledger(), torn));
  KV_ASSIGN_OR_RETURN(CampaignState state, CampaignState::open(folder.state()));
  KV_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open(folder.ledger()));
  output.say(fmt::format("kverify {}: campaign in {}, {} cases so far, {} workers\n", kVersion,
                         folder.root, state.total(&CampaignSlot::done), options.jobs));
  Supervisor supervisor(options, std::move(state), std::move(ledger));
  KV_RETURN_IF_ERROR(supervisor.run());
  KV_ASSIGN_OR_RETURN(const Totals t, totals_of(folder));
  std::string text = fmt::format("{} cases of the campaign:", t.cases);
  for (const auto& [name, count] : t.outcomes) text += fmt::format(" {} {},", count, name);
  text.back() = '\n';
  for (const auto& [fault, count] : t.faults) text += fmt::format("  {:>8}  {}\n", count, fault);
  if (t.deaths > 0) text += fmt::format("  {} workers died and were replaced\n", t.deaths);
  if (t.unreadable > 0)
    text += fmt::format("  {} lines of the ledger could not be read\n", t.unreadable);
  output.say(text);
  const ExitCode code = exit_code_of(t);
  nlohmann::ordered_json json = {{"kverify", kVersion},
                                 {"command", "fuzz"},
                                 {"cases", t.cases},
                                 {"outcomes", t.outcomes},
                                 {"faults", t.faults},
                                 {"workers_died", t.deaths},
                                 {"unreadable_lines", t.unreadable},
                                 {"exit_code", static_cast<int>(code)}};
  KV_RETURN_IF_ERROR(output.finish(json));
  return interrupted() ? static_cast<ExitCode>(kInterruptedStatus) : code;
}

}  // namespace kv::cli
