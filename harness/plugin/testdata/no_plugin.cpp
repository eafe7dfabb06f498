// A shared object that is no plugin, in three ways, by macro.
#if defined(KV_STATIC_RUNTIME)
// Device code without libcudart.so.13 among the needed libraries: linked with -cudart static.
__attribute__((section(".nv_fatbin"), used)) static const char device_code[16] = {0};
#elif defined(KV_OTHER_RUNTIME)
extern "C" int cudaMalloc(void**, unsigned long);
extern "C" int use_other_runtime() { return cudaMalloc(nullptr, 0); }
#elif defined(KV_BE_OTHER_RUNTIME)
extern "C" int cudaMalloc(void**, unsigned long) { return 0; }
#endif
extern "C" int no_entry_point_here() { return 0; }
