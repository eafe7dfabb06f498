// `kverify exec`: a user's own CUDA program under all checks of the CPU device.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "harness/case/text_file.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/child_program.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/json_fields.h"
#include "harness/judge/suppressions.h"
#include "harness/plugin/elf.h"
#include "harness/plugin/loader.h"

extern char** environ;

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kReportBytesMax = uint64_t{256} << 20;
constexpr int kCannotStart = 127;
constexpr char kLate[] = "the time limit is over";  // in the device's finding

/// As the shell finds it.
Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    return bad_input("'" + name + "' cannot be executed: " + std::strerror(errno));
  }
  const char* const path = std::getenv("PATH");
  std::string_view folders = path ? path : "/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t colon = folders.find(':');
    const std::string candidate = std::string(folders.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    folders = colon == folders.npos ? "" : folders.substr(colon + 1);
  }
  return bad_input("there is no program '" + name + "' in PATH; one in this folder is ./" + name);
}

/// The CPU device as the runtime library `soname`, which lies beside that of CUDA 13.
Result<std::string> find_device(const std::string& soname) {
  const std::vector<std::string> candidates = runtime_candidates(DeviceKind::kCpu);
  for (const std::string& candidate : candidates) {
    std::filesystem::path path = candidate;
    if (!soname.empty() && path.filename().string().starts_with("libcudart.so"))
      path.replace_filename(soname);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return std::filesystem::absolute(path).string();
  }
  return environment_error("the CPU device was not found at " + candidates.front() +
                           ": build the target 'cudart_simt', or set KVERIFY_SIMT to its path");
}

/// What is loaded before the program's own libraries: the device, and the cuBLAS beside it for a
/// program that needs one, wherever it says to look for it.
std::string preloads(const std::string& device, const Result<ElfFacts>& program) {
  constexpr const char* kCublas = "libcublas.so.13";
  if (!program.ok() || std::ranges::count(program->needed, kCublas) == 0) return device;
  const auto drop_in = std::filesystem::path(device).replace_filename(kCublas);
  std::error_code error;
  return std::filesystem::exists(drop_in, error) ? device + ":" + drop_in.string() : device;
}

/// The environment of the program: kverify's own, and what the CPU device reads.
std::vector<std::string> environment_for(const ExecOptions& options, std::string preload,
                                         const std::string& report) {
  std::vector<std::string> list;
  // Where libraries of the program, and programs that a script starts, find cuBLAS.
  std::string folders = std::filesystem::path(preload.substr(0, preload.find(':'))).parent_path();
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LD_PRELOAD=")) {
      preload += ":" + std::string(text.substr(std::strlen("LD_PRELOAD=")));
    } else if (text.starts_with("LD_LIBRARY_PATH=") && !text.ends_with('=')) {
      folders += ":" + std::string(text.substr(std::strlen("LD_LIBRARY_PATH=")));
    } else if (!text.starts_with("KV_SIMT_")) {
      list.emplace_back(text);
    }
  }
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) list.push_back(std::string(name) + "=" + value);
  };
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  set("LD_PRELOAD", preload);
  set("LD_LIBRARY_PATH", folders);
  set("KV_SIMT_REPORT_JSON", report);
  set("KV_SIMT_CHECKS", options.checks);
  set("KV_SIMT_SEED", std::to_string(options.seed));
  set("KV_SIMT_MODEL", std::to_string(options.model_sm));
  set("KV_SIMT_PROFILE", absolute(options.profile_path));
  set("KV_SIMT_LCOV", absolute(options.lcov_path));
  set("KV_SIMT_TIME_LIMIT", std::to_string(options.time_limit_s));
  return list;
}

/// What the processes of the program left.
struct Reports {
  std::vector<Json> findings;         // of each process that launched or found something
  uint64_t processes = 0;             // that launched a kernel
  uint64_t issued = 0, executed = 0;  // kernels
  uint64_t cut_short = 0;             // processes that ended by a signal, _exit or exec
  bool late = false;                  // the device stopped a kernel at the time limit
  Json refusal;                       // of a device that cannot run here
};

/// `tallies`: the small files beside the reports.
void add_report(Json report, bool is_tally, Reports* all) {
  if (!report.is_object()) return;
  if (is_tally) {
    ++all->processes;
    all->issued += number_field(report, "issued");
    all->executed += number_field(report, "executed");
    all->cut_short += number_field(report, "ended") == 0;
    return;
  }
  if (report.contains("refused")) all->refusal = report;
  if (!report.contains("findings") || !report["findings"].is_array()) return;
  all->late |= report.value("time_limit_met", Json()) == true;
  if (number_field(report, "launches") + report["findings"].size() > 0) {
    all->findings.push_back(std::move(report));
  }
}

/// Oldest name first.
Result<Reports> read_reports(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path().string());
  }
  if (error) return environment_error(folder + ": cannot be listed: " + error.message());
  std::sort(paths.begin(), paths.end());
  Reports reports;
  for (const std::string& path : paths) {
    if (path.ends_with(".part")) continue;  // its process died writing; the file before it is whole
    KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kReportBytesMax));
    Json report = Json::parse(text, nullptr, false);
    if (report.is_discarded()) {
      return environment_error(path +
                               ": expected a report of the CPU device, got no JSON: what "
                               "its process found is lost");
    }
    add_report(std::move(report), path.ends_with(".tally"), &reports);
  }
  return reports;
}

struct Findings {
  Json active = Json::array();
  std::map<const Suppression*, uint64_t> suppressed;
  uint64_t launches = 0, not_kept = 0;
  uint64_t late = 0;     // of the active ones: kernels that were stopped at the time limit
  uint64_t not_run = 0;  // and kernels that the device could not run at all
  std::string text;
};

Findings sift(const Reports& reports, std::span<const Suppression> suppressions) {
  Findings all;
  for (const Json& report : reports.findings) {
    all.launches += number_field(report, "launches");
    all.not_kept += number_field(report, "findings_not_kept");
    for (const Json& f : report["findings"]) {
      const std::vector<SourcePlace> places = {
          {text_field(f, "source_file"), number_field(f, "source_line")},
          {text_field(f, "inlined_at_file"), number_field(f, "inlined_at_line")}};
      if (const auto* s = find_suppression(suppressions, text_field(f, "kind"), places)) {
        ++all.suppressed[s];
        continue;
      }
      all.text += text_field(f, "text");
      all.late += reports.late && text_field(f, "text").find(kLate) != std::string::npos;
      all.not_run += text_field(f, "kind") == "unsupported";
      all.active.push_back(f);
    }
  }
  all.launches = std::max(all.launches, reports.executed);
  return all;
}

std::string plural(uint64_t count, const char* noun, const char* ending = "s") {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

std::string ending_text(const Ending& ending) {
  if (ending.stopped) return "the program did not end, and was killed";
  if (ending.signal) {
    return fmt::format("the program was ended by signal {} ({})", ending.signal,
                       strsignal(ending.signal));
  }
  return fmt::format("the program ended with status {}", ending.status);
}

/// What of the program was not looked at.
std::string gaps_text(const Reports& reports, const Ending& ending, uint64_t time_limit_s) {
  std::string text;
  if (reports.late || ending.stopped) {
    text += fmt::format("kverify: the time limit of {} s is over (--time-limit)\n", time_limit_s);
  }
  if (reports.cut_short == 0) return text;
  text += fmt::format(
      "kverify: {} ended by a signal, by _exit or by exec, so leaks were not looked for",
      plural(reports.cut_short, "process", "es"));
  if (reports.issued > reports.executed) {
    text += fmt::format("; of {} only {} had been executed by then",
                        plural(reports.issued, "launch", "es"), reports.executed);
  }
  return text + "\n";
}

std::string suppressions_text(const Findings& findings, std::span<const Suppression> suppressions) {
  std::string text;
  for (const Suppression& s : suppressions) {
    const auto count = findings.suppressed.find(&s);
    if (count == findings.suppressed.end()) {
      text += fmt::format("  note: nothing was suppressed by {} at {}:{} ({})\n", s.kind,
                          s.place.file, s.place.line, s.reason);
    } else {
      text += fmt::format("  suppressed {} at {}:{}: {} ({})\n", s.kind, s.place.file, s.place.line,
                          plural(count->second, "time"), s.reason);
    }
  }
  return text;
}

std::string summary(const Findings& findings, const ExecOptions& options, const Ending& ending) {
  std::string text =
      fmt::format("kverify: {} in {} on the CPU device (sm_{}, schedule seed {})",
                  plural(findings.active.size(), "finding"),
                  plural(findings.launches, "launch", "es"), options.model_sm, options.seed);
  if (findings.not_kept) text += fmt::format("; {} more not kept", findings.not_kept);
  return text + "; " + ending_text(ending) + "\n";
}

Json suppressions_json(std::span<const Suppression> suppressions, const Findings& findings) {
  Json list = Json::array();
  for (const Suppression& s : suppressions) {
    if (findings.suppressed.contains(&s)) continue;
    list.push_back(
        {{"kind", s.kind}, {"file", s.place.file}, {"line", s.place.line}, {"reason", s.reason}});
  }
  return list;
}

Json to_json(const Findings& findings, const Reports& reports, const Ending& ending,
             std::span<const Suppression> suppressions) {
  Json json;
  json["kverify"] = kVersion;
  json["command"] = "exec";
  json["launches"] = findings.launches;
  json["launches_not_executed"] = reports.issued - std::min(reports.issued, reports.executed);
  json["processes_cut_short"] = reports.cut_short;
  json["time_limit_met"] = reports.late || ending.stopped;
  json["findings"] = findings.active;
  json["findings_not_kept"] = findings.not_kept;
  uint64_t suppressed = 0;
  for (const auto& [suppression, count] : findings.suppressed) suppressed += count;
  json["suppressed"] = suppressed;
  json["suppressions_unused"] = suppressions_json(suppressions, findings);
  json["program_status"] = ending.status;
  return json;
}

/// Nothing of the device was used: say what may be the matter.
Result<ExitCode> nothing_ran(const std::string& program, const Ending& ending) {
  if (ending.status == kCannotStart) {
    return unsupported("'" + program +
                       "' did not start. If the line above names an undefined cuda function, the "
                       "CPU device does not have it: leave out the code that calls it");
  }
  std::fprintf(stderr, "kverify: '%s' launched nothing, so nothing was checked; %s\n",
               program.c_str(), ending_text(ending).c_str());
  if (ending.stopped) return ExitCode::kTimeLimit;
  return ending.status == 0 ? ExitCode::kVacuous : static_cast<ExitCode>(ending.status);
}

Error refusal_of(const Json& report) {
  const std::string sentence = text_field(report, "refused");
  const bool bad = number_field(report, "status") == static_cast<int>(ExitCode::kBadInput);
  return bad ? bad_input(sentence) : environment_error(sentence);
}

ExitCode exit_code(const Findings& findings, const Reports& reports, const Ending& ending) {
  const bool others = findings.active.size() > findings.late + findings.not_run;
  if (others || findings.not_kept) return ExitCode::kFailed;
  if (findings.late || ending.stopped) return ExitCode::kTimeLimit;
  if (findings.not_run) return ExitCode::kUnsupported;
  const bool vacuous = ending.status == 0 && reports.processes > 0 && reports.executed == 0;
  return vacuous ? ExitCode::kVacuous : static_cast<ExitCode>(ending.status);
}

}  // namespace

Result<ExitCode> exec(const ExecOptions& options) {
  const std::vector<WrittenFile> written = {{"--profile", options.profile_path},
                                            {"--lcov", options.lcov_path},
                                            {"--json", options.json_path.value_or("")}};
  KV_RETURN_IF_ERROR(require_different_files(written));
  KV_RETURN_IF_ERROR(require_folders(written));
  const Output output(options.json_path);
  std::vector<Suppression> suppressions;
  if (!options.suppressions_path.empty()) {
    KV_ASSIGN_OR_RETURN(suppressions, read_suppressions(options.suppressions_path));
  }
  KV_ASSIGN_OR_RETURN(const std::string program, find_program(options.command.front()));
  std::string runtime;
  // A script, or another kind of machine's program: the system will say.
  const auto facts = inspect_elf(program);
  if (facts.ok()) {
    KV_ASSIGN_OR_RETURN(runtime, runtime_of_program(program, *facts));
  }
  KV_ASSIGN_OR_RETURN(const std::string device, find_device(runtime));
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  std::fflush(stdout);
  KV_ASSIGN_OR_RETURN(
      const Ending ending,
      run_program(program, options.command,
                  environment_for(options, preloads(device, facts), folder.path() + "/report"),
                  options.time_limit_s));
  KV_ASSIGN_OR_RETURN(const Reports reports, read_reports(folder.path()));
  if (!reports.refusal.is_null()) return refusal_of(reports.refusal);
  if (reports.findings.empty() && reports.processes == 0) return nothing_ran(program, ending);
  const Findings findings = sift(reports, suppressions);
  std::fprintf(stderr, "%s%s%s%s", findings.text.c_str(),
               gaps_text(reports, ending, options.time_limit_s).c_str(),
               summary(findings, options, ending).c_str(),
               suppressions_text(findings, suppressions).c_str());
  KV_RETURN_IF_ERROR(output.finish(to_json(findings, reports, ending, suppressions)));
  return exit_code(findings, reports, ending);
}

}  // namespace kv::cli
