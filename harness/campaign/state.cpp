#include "harness/campaign/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/core/check.h"

namespace kv {
namespace {

constexpr uint64_t kMagic = 0x31706d61632d766b;  // "kv-camp1"

}  // namespace

struct CampaignState::File {
  std::atomic<uint64_t> magic, next;
  std::atomic<uint32_t> stop;
  CampaignSlot slots[kCampaignJobsMax];
};

Result<CampaignState> CampaignState::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return environment_error("cannot open '" + path + "': " + std::strerror(errno));
  struct stat status = {};
  fstat(file, &status);
  const bool fresh = status.st_size == 0;
  void* mapped = MAP_FAILED;
  const bool right_size = status.st_size == static_cast<off_t>(sizeof(File));
  // All of it on the disk: a page of a map that has no room there ends the process.
  const int room = fresh || right_size ? posix_fallocate(file, 0, sizeof(File)) : 0;
  if (room != 0) {
    close(file);
    return environment_error("cannot write '" + path + "': " + std::strerror(room));
  }
  if ((fresh && ftruncate(file, sizeof(File)) == 0) || right_size) {
    mapped = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (!fresh && !right_size)
    return bad_input(path + ": expected the state of a campaign, got another file");
  if (mapped == MAP_FAILED)
    return environment_error("cannot map '" + path + "': " + std::strerror(errno));
  CampaignState state;
  state.file_ = static_cast<File*>(mapped);
  // A process that died between making the file and this line left zeros: a fresh state.
  const uint64_t magic = state.file_->magic.load();
  if (magic != 0 && magic != kMagic)
    return bad_input(path + ": expected the state of a campaign, got another file");
  state.file_->magic = kMagic;
  return state;
}

CampaignState::CampaignState(CampaignState&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)) {}
CampaignState& CampaignState::operator=(CampaignState&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
CampaignState::~CampaignState() {
  if (file_ != nullptr) munmap(file_, sizeof(File));
}

CampaignSlot& CampaignState::slot(uint32_t worker) {
  KV_CHECK(worker < kCampaignJobsMax, "a worker beyond the state's slots");
  return file_->slots[worker];
}

std::optional<uint64_t> CampaignState::unfinished(uint32_t worker) const {
  const uint64_t running = file_->slots[worker].running;
  if (running == 0) return std::nullopt;
  return running - 1;
}

std::optional<uint32_t> CampaignState::left_behind(CampaignWorker who) const {
  for (uint32_t s = who.worker; s < kCampaignJobsMax; s += std::max(who.workers, 1U)) {
    if (unfinished(s)) return s;
  }
  return std::nullopt;
}

bool CampaignState::is_waited_for(CampaignWorker who) const { return left_behind(who).has_value(); }

uint64_t CampaignState::claim(CampaignWorker who) {
  std::atomic<uint64_t>& running = slot(who.worker).running;
  if (const auto left = left_behind(who)) {
    // Stands in both slots for a moment: a process killed between has it run twice.
    running = file_->slots[*left].running.load();
    if (*left != who.worker) file_->slots[*left].running = 0;
    return running - 1;
  }
  for (uint64_t next = file_->next;;) {
    running = next + 1;
    if (file_->next.compare_exchange_weak(next, next + 1)) return next;
  }
}

void CampaignState::note_case(uint32_t worker, std::string_view text) {
  CampaignSlot& s = slot(worker);
  s.text_bytes = 0;
  if (text.size() > kSlotTextMax) return;
  std::memcpy(s.text, text.data(), text.size());
  s.text_bytes = static_cast<uint32_t>(text.size());
}

std::string CampaignState::running_case(uint32_t worker) const {
  const CampaignSlot& s = file_->slots[worker];
  const uint32_t bytes = s.text_bytes;
  return bytes > kSlotTextMax ? "" : std::string(s.text, bytes);
}

void CampaignState::release(uint32_t worker) {
  CampaignSlot& s = slot(worker);
  s.text_bytes = 0;
  ++s.done;
  s.running = 0;
}

uint64_t CampaignState::claimed() const { return file_->next; }

uint64_t CampaignState::total(std::atomic<uint64_t> CampaignSlot::*counter) const {
  uint64_t sum = 0;
  for (const CampaignSlot& s : file_->slots) sum += s.*counter;
  return sum;
}

std::atomic<uint32_t>& CampaignState::stop() { return file_->stop; }

}  // namespace kv
