#include "harness/plugin/frame.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace kv {
namespace {

constexpr uint32_t kMagic = 0x3146564b;  // "KVF1"
constexpr size_t kReadBytes = size_t{256} << 10;
constexpr uint64_t kReservedMax = 1 << 20;  // on the word of a header alone

bool write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool read_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

bool write_frame(int socket, FrameType type, std::span<const std::byte> payload) {
  FrameAssembler::Header header{kMagic, static_cast<uint32_t>(type), payload.size()};
  // In one call, as far as it goes: the reader wakes up once.
  std::array<iovec, 2> parts = {iovec{&header, sizeof header},
                                iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t written = 0;
  do {
    written = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return false;
  const auto sent = static_cast<size_t>(written);
  const auto head = std::as_bytes(std::span(&header, 1));
  if (sent < head.size() && !write_all(socket, head.subspan(sent))) return false;
  return write_all(socket, payload.subspan(sent - std::min(sent, head.size())));
}

std::optional<Frame> read_frame(int socket) {
  FrameAssembler assembler;
  std::array<std::byte, 16> header;
  if (!read_all(socket, header)) return std::nullopt;
  assembler.add(header);
  std::vector<std::byte> chunk;
  while (!assembler.malformed()) {
    if (auto frame = assembler.next()) return frame;
    chunk.resize(std::min<uint64_t>(kReadBytes, assembler.missing_bytes()));
    if (!read_all(socket, chunk)) return std::nullopt;
    assembler.add(chunk);
  }
  return std::nullopt;
}

void FrameAssembler::add(std::span<const std::byte> bytes) {
  while (!bytes.empty() && !malformed_) take(bytes);
}

uint64_t FrameAssembler::missing_bytes() const {
  return (header_ ? header_->payload_bytes : sizeof(Header)) - pending_.size();
}

void FrameAssembler::take(std::span<const std::byte>& bytes) {
  // Beyond kReservedMax the payload's memory grows with the bytes that have come, not with what the
  // header claims.
  const size_t portion = std::min<uint64_t>(bytes.size(), missing_bytes());
  pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(portion));
  bytes = bytes.subspan(portion);
  if (missing_bytes() > 0) return;
  if (!header_) {
    Header header;
    std::memcpy(&header, pending_.data(), sizeof header);
    malformed_ = header.magic != kMagic || header.payload_bytes > kFrameBytesMax;
    header_ = header;
    pending_.clear();
    if (malformed_) return;
    pending_.reserve(std::min(header.payload_bytes, kReservedMax));
    if (header.payload_bytes > 0) return;
  }
  complete_.push_back({static_cast<FrameType>(header_->type), std::exchange(pending_, {})});
  header_.reset();
}

std::optional<Frame> FrameAssembler::next() {
  if (complete_.empty()) return std::nullopt;
  Frame frame = std::move(complete_.front());
  complete_.pop_front();
  return frame;
}

}  // namespace kv
