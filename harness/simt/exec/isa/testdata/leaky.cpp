// The planted bug of leak_test: an inline function outside the namespace of its instruction set.
// The linker may pick the copy that was compiled for AVX2 for everybody.
namespace kv::simt {
inline int not_forced_inline(int x) { return x * x + 1; }
namespace leaky {
using Function = int (*)(int);
Function leak() { return not_forced_inline; }
}  // namespace leaky
}  // namespace kv::simt
