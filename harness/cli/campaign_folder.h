// Purpose: where a campaign keeps what.
// Contract: paths only. `settings` pins what a resumed campaign must not change.
// Example: const CampaignFolder folder(options.folder); Ledger::open(folder.ledger());
#pragma once

#include <cstdint>
#include <string>

namespace kv::cli {

struct CampaignFolder {
  explicit CampaignFolder(std::string path) : root(std::move(path)) {}
  std::string settings() const { return root + "/campaign.json"; }
  std::string state() const { return root + "/state"; }
  std::string ledger() const { return root + "/ledger.jsonl"; }
  std::string lock() const { return root + "/lock"; }
  std::string worker_lock(uint32_t worker) const {
    return root + "/worker-" + std::to_string(worker) + ".lock";
  }
  std::string findings() const { return root + "/crashing"; }
  std::string corpus() const { return root + "/incubating"; }

  std::string root;
};

}  // namespace kv::cli
