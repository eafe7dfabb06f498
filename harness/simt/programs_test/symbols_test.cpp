// What the drop-in exports: C names of the runtime with its version, and the control table; nothing
// of C++ that could meet a plugin's own.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string run(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return text;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
  pclose(pipe);
  return text;
}

const std::string kLibrary = KV_BUILD_DIR "/lib/simt/libcudart.so.13";
const std::string kLibrary12 = KV_BUILD_DIR "/lib/simt/libcudart.so.12";

TEST(Symbols, OnlyTheRuntimesNames) {
  const std::string foreign =
      run("nm -D --defined-only " + kLibrary +
          " | awk '{print $3}' | grep -v -E "
          "'^(__)?cuda[A-Za-z0-9_]+@@libcudart\\.so\\.13$|^kv_simt_control@@libcudart\\.so\\.13$|"
          "^libcudart\\.so\\.13'");
  EXPECT_EQ(foreign, "");
  const std::string count = run("nm -D --defined-only " + kLibrary + " | grep -c cuda");
  EXPECT_GT(std::stoi(count), 100) << "the list above was not empty for want of a library";
}

TEST(Symbols, TheSonameIsTheToolkits) {
  const std::string dynamic = run("readelf -d " + kLibrary);
  EXPECT_NE(dynamic.find("Library soname: [libcudart.so.13]"), std::string::npos) << dynamic;
}

/// What a program built with CUDA 12 finds: the same names under its own version, and those of its
/// functions that 13 does not have or has with other parameters.
TEST(Symbols, ThereIsALibraryForCuda12) {
  EXPECT_NE(run("readelf -d " + kLibrary12).find("Library soname: [libcudart.so.12]"),
            std::string::npos);
  const std::string foreign = run("nm -D --defined-only " + kLibrary12 +
                                  " | awk '{print $3}' | grep -v '@@libcudart.so.12$' | grep -v "
                                  "'^libcudart.so.12'");
  EXPECT_EQ(foreign, "");
  // In a process of its own: two devices do not fit into one.
  EXPECT_EXIT(
      {
        void* library = dlopen(kLibrary12.c_str(), RTLD_NOW | RTLD_LOCAL);
        bool all = library != nullptr;
        for (const char* name : {"cudaMalloc", "cudaLaunchKernel", "cudaGetDeviceProperties_v2",
                                 "cudaMemPrefetchAsync", "cudaStreamGetCaptureInfo_v2"}) {
          all = all && dlvsym(library, name, "libcudart.so.12") != nullptr;
        }
        // The struct of that name is 13's.
        all = all && dlsym(library, "cudaGetDeviceProperties") == nullptr;
        int got = 0;
        if (all) reinterpret_cast<int (*)(int*)>(dlsym(library, "cudaRuntimeGetVersion"))(&got);
        std::fprintf(stderr, "%d", got);
        std::exit(got == 12040 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "12040");
}

TEST(Symbols, VersionedLookupFindsThem) {
  void* library = dlopen(kLibrary.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlvsym(library, "cudaMalloc", "libcudart.so.13"), nullptr);
  EXPECT_NE(dlvsym(library, "__cudaLaunchKernel_ptsz", "libcudart.so.13"), nullptr);
  EXPECT_NE(dlvsym(library, "kv_simt_control", "libcudart.so.13"), nullptr);
}

}  // namespace
