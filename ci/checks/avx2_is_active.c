/* Purpose: whether libc uses AVX2 and FMA here, to prove that ci/without_avx2 hides them and that
 * nothing else does.
 * Contract: avx2_is_active yes|no exits 0 when that is the answer, 1 when not, 77 when this
 * processor has none to hide, or when `yes` is asked under the wrapper. `no` also wants AVX-512 and
 * kverify's own dispatch off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/platform/x86.h>

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  if (!CPU_FEATURE_PRESENT(AVX2)) return 77;
  const char* cpu = getenv("KVERIFY_CPU");
  const int portable = cpu != NULL && strcmp(cpu, "portable") == 0;
  const int avx2 = CPU_FEATURE_ACTIVE(AVX2), fma = CPU_FEATURE_ACTIVE(FMA);
  const int avx512 = CPU_FEATURE_ACTIVE(AVX512F);
  printf("AVX2 %d, FMA %d, AVX-512F %d, KVERIFY_CPU=portable %d\n", avx2, fma, avx512, portable);
  if (strcmp(argv[1], "yes") == 0) return portable ? 77 : !(avx2 && fma);
  return !(!avx2 && !fma && !avx512 && portable);
}
