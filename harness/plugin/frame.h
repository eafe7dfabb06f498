// Purpose: whole messages over a stream socket between kverify and a worker.
// Contract: a frame is a 16-byte header (magic, type, payload bytes) and its payload. Writing never
// raises SIGPIPE. FrameAssembler takes bytes as they arrive, in any portions, and refuses a wrong
// magic or a payload above kFrameBytesMax, once and for good.
// Example: FrameAssembler in; in.add(bytes); while (auto frame = in.next()) handle(*frame);
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace kv {

enum class FrameType : uint32_t {
  kHello = 1,      // worker: the plugin is loaded, or why not
  kRun = 2,        // kverify: run this case
  kOperation = 3,  // worker: what one operation did
  kEnd = 4,        // worker: the case is over
  kEngine = 5,     // kverify: a request to the engine of an engine-level case; answered by kEnd
};

struct Frame {
  FrameType type = FrameType::kHello;
  std::vector<std::byte> payload;
};

inline constexpr uint64_t kFrameBytesMax = uint64_t{2} << 30;

/// Blocks until the frame is written; false when the other end is gone.
bool write_frame(int socket, FrameType type, std::span<const std::byte> payload);
/// Both, one after the other, in one call of the system: the reader wakes once.
bool write_frames(int socket, const Frame& first, const Frame& second);
/// Blocks until a frame has arrived; nothing at the end of the stream or on a malformed frame.
std::optional<Frame> read_frame(int socket);

class FrameAssembler {
 public:
  void add(std::span<const std::byte> bytes);
  std::optional<Frame> next();
  bool malformed() const { return malformed_; }
  /// Bytes until the header or the payload that is arriving is whole.
  uint64_t missing_bytes() const;

 private:
  struct Header {
    uint32_t magic;
    uint32_t type;
    uint64_t payload_bytes;
  };
  friend class FrameParts;

  void take(std::span<const std::byte>& bytes);

  std::vector<std::byte> pending_;  // of the frame that is arriving: header, then payload
  std::deque<Frame> complete_;
  std::optional<Header> header_;
  bool malformed_ = false;
};

/// All frames that come over one socket: a frame that is there whole costs one call of the system.
class FrameReader {
 public:
  explicit FrameReader(int socket) : socket_(socket) {}
  /// As read_frame().
  std::optional<Frame> read();

 private:
  int socket_;
  FrameAssembler assembler_;
  std::vector<std::byte> buffer_;
};

}  // namespace kv
