#include "harness/simt/cudart/tally.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "harness/simt/cudart/process_file.h"

namespace kv::simt::cudart {

void Tally::issued() {
  ++issued_;
  write();
}

void Tally::executed() {
  ++executed_;
  issued_ = std::max(issued_, executed_);  // graphs are launched without being issued again
  write();
}

void Tally::end() {
  ended_ = true;
  if (file_ >= 0 && process_ == getpid()) write();
}

void Tally::write() {
  if (path_.empty()) return;
  if (process_ != getpid()) {
    if (process_ != 0) {  // forked: what the parent launched is the parent's
      issued_ = 1;
      executed_ = 0;
      close(file_);
    }
    process_ = getpid();
    const std::string name = process_file(path_, ".tally");
    file_ = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  }
  // It never gets shorter, so that the file is whole whenever the process dies.
  const std::string text = "{\"issued\": " + std::to_string(issued_) +
                           ", \"executed\": " + std::to_string(executed_) +
                           ", \"ended\": " + (ended_ ? "1" : "0") + "}\n";
  if (file_ >= 0) (void)!pwrite(file_, text.data(), text.size(), 0);
}

}  // namespace kv::simt::cudart
