// `kverify worker` without the rest of kverify, for case_runner_test.
#include <string>

#include "harness/run/worker_loop.h"

int main(int argc, char** argv) {
  // worker --device D --plugin P
  if (argc != 6) return 2;
  const bool cuda = std::string(argv[3]) == "cuda";
  return kv::run_worker(
      {.device = cuda ? kv::DeviceKind::kCuda : kv::DeviceKind::kCpu, .plugin_path = argv[5]});
}
