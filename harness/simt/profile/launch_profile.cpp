#include "harness/simt/profile/launch_profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kv::simt::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kSectorBytes = 32;

struct Field {
  const char* name;
  uint64_t kv_simt_counters::*value;
};

/// Those that add up.
constexpr Field kFields[] = {
    {"blocks", &kv_simt_counters::blocks},
    {"warps", &kv_simt_counters::warps},
    {"warp_instructions", &kv_simt_counters::warp_instructions},
    {"thread_instructions", &kv_simt_counters::thread_instructions},
    {"divergent_branches", &kv_simt_counters::divergent_branches},
    {"barriers", &kv_simt_counters::barriers},
    {"mma", &kv_simt_counters::mma},
    {"global_load_requests", &kv_simt_counters::global_load_requests},
    {"global_load_sectors", &kv_simt_counters::global_load_sectors},
    {"global_store_requests", &kv_simt_counters::global_store_requests},
    {"global_store_sectors", &kv_simt_counters::global_store_sectors},
    {"global_bytes_read_distinct", &kv_simt_counters::global_bytes_read_distinct},
    {"global_bytes_written_distinct", &kv_simt_counters::global_bytes_written_distinct},
    {"shared_requests", &kv_simt_counters::shared_requests},
    {"shared_bank_conflicts", &kv_simt_counters::shared_bank_conflicts},
};

Json counters_json(const kv_simt_counters& c, std::span<const uint64_t> instructions) {
  Json json;
  for (const Field& field : kFields) json[field.name] = c.*field.value;
  json["global_bytes_moved"] = (c.global_load_sectors + c.global_store_sectors) * kSectorBytes;
  json["global_bytes_compulsory"] = c.global_bytes_read_distinct + c.global_bytes_written_distinct;
  json["shared_bytes_peak"] = c.shared_bytes_peak;
  Json& classes = json["instructions"];
  for (uint32_t k = 0; k < kInstructionClasses; ++k) {
    classes[class_name(InstructionClass(k))] = instructions[k];
  }
  return json;
}

}  // namespace

void add(kv_simt_counters& to, const kv_simt_counters& more) {
  to.launches += more.launches;
  for (const Field& field : kFields) to.*field.value += more.*field.value;
  to.shared_bytes_peak = std::max(to.shared_bytes_peak, more.shared_bytes_peak);
}

kv_simt_counters difference(const kv_simt_counters& after, const kv_simt_counters& before) {
  kv_simt_counters d = after;
  d.launches -= before.launches;
  for (const Field& field : kFields) d.*field.value -= before.*field.value;
  return d;
}

std::string profile_json(std::span<const LaunchProfile> launches) {
  kv_simt_counters sum = {};
  uint64_t instructions[kInstructionClasses] = {};
  Json list = Json::array();
  for (const LaunchProfile& launch : launches) {
    Json json;
    json["launch"] = launch.number;
    json["kernel"] = launch.kernel;
    json["grid"] = launch.grid;
    json["block"] = launch.block;
    json.update(counters_json(launch.counters, launch.instructions));
    list.push_back(std::move(json));
    add(sum, launch.counters);
    for (uint32_t k = 0; k < kInstructionClasses; ++k) instructions[k] += launch.instructions[k];
  }
  Json json;
  json["launches"] = std::move(list);
  json["sum"] = counters_json(sum, instructions);
  return json.dump(1) + "\n";
}

}  // namespace kv::simt::profile
