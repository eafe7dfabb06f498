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

/// What one call of the system writes: headers and payloads.
class FrameParts {
 public:
  void add(FrameType type, std::span<const std::byte> payload) {
    headers_[frames_] = {kMagic, static_cast<uint32_t>(type), payload.size()};
    put(std::as_bytes(std::span(&headers_[frames_++], 1)));
    put(payload);
  }
  bool write(int socket) {
    std::span<iovec> left(parts_.data(), count_);
    while (!left.empty()) {
      msghdr message = {};
      message.msg_iov = left.data();
      message.msg_iovlen = left.size();
      const ssize_t written = ::sendmsg(socket, &message, MSG_NOSIGNAL);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      drop(static_cast<size_t>(written), left);
    }
    return true;
  }

 private:
  void put(std::span<const std::byte> bytes) {
    if (!bytes.empty()) parts_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }
  static void drop(size_t written, std::span<iovec>& left) {
    while (written > 0) {
      iovec& part = left.front();
      const size_t of_part = std::min(written, part.iov_len);
      part = {static_cast<std::byte*>(part.iov_base) + of_part, part.iov_len - of_part};
      written -= of_part;
      if (part.iov_len == 0) left = left.subspan(1);
    }
  }
  std::array<FrameAssembler::Header, 2> headers_;
  std::array<iovec, 4> parts_;
  size_t frames_ = 0, count_ = 0;
};

bool write_frame(int socket, FrameType type, std::span<const std::byte> payload) {
  FrameParts parts;
  parts.add(type, payload);
  return parts.write(socket);
}

bool write_frames(int socket, const Frame& first, const Frame& second) {
  FrameParts parts;
  parts.add(first.type, first.payload);
  parts.add(second.type, second.payload);
  return parts.write(socket);
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

std::optional<Frame> FrameReader::read() {
  buffer_.resize(kReadBytes);
  for (;;) {
    if (auto frame = assembler_.next()) return frame;
    if (assembler_.malformed()) return std::nullopt;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    assembler_.add(std::span(buffer_).first(static_cast<size_t>(got)));
  }
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
