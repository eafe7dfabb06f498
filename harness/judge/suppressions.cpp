#include "harness/judge/suppressions.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "harness/case/text_file.h"
#include "harness/simt/control/finding_names.h"

namespace kv {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;

bool read_place(const std::string& text, SourcePlace* place) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return false;
  place->file = text.substr(0, colon);
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, place->line);
  return status == std::errc() && stop == end && place->line > 0;
}

bool is_kind(const std::string& name) {
  if (name == "*") return true;
  const std::string none = dashed(finding_name(0));  // so is any number behind the last kind
  for (uint32_t kind = 1; dashed(finding_name(kind)) != none; ++kind) {
    if (name == dashed(finding_name(kind))) return true;
  }
  return false;
}

bool same_place(const SourcePlace& wanted, const SourcePlace& got) {
  if (wanted.line != got.line || !got.file.ends_with(wanted.file)) return false;
  const size_t before = got.file.size() - wanted.file.size();
  return before == 0 || got.file[before - 1] == '/';
}

}  // namespace

Result<std::vector<Suppression>> read_suppressions(const std::string& path) {
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kFileBytesMax));
  std::vector<Suppression> list;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos || line.starts_with("#")) continue;
    Suppression s;
    std::istringstream words(line);
    std::string place;
    words >> s.kind >> place;
    std::getline(words >> std::ws, s.reason);
    if (!read_place(place, &s.place) || s.reason.empty()) {
      return bad_input(path + ":" + std::to_string(number) +
                       ": expected 'kind file:line reason', got '" + line.substr(0, 80) + "'");
    }
    if (!is_kind(s.kind)) {
      return bad_input(path + ":" + std::to_string(number) +
                       ": expected a kind of finding as reports print it, with - for blanks, or *, "
                       "got '" +
                       s.kind.substr(0, 40) + "'");
    }
    list.push_back(std::move(s));
  }
  return list;
}

const Suppression* find_suppression(std::span<const Suppression> list, const std::string& kind,
                                    std::span<const SourcePlace> places) {
  const std::string name = dashed(kind);
  for (const Suppression& s : list) {
    if (s.kind != "*" && s.kind != name) continue;
    const auto matches = [&](const SourcePlace& p) { return same_place(s.place, p); };
    if (std::any_of(places.begin(), places.end(), matches)) return &s;
  }
  return nullptr;
}

}  // namespace kv
