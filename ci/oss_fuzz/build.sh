#!/usr/bin/env bash
# Purpose: the build contract of OSS-Fuzz and ClusterFuzzLite: fuzz targets, their libraries, seed
#   corpora, dictionary and options, all below $OUT.
# Contract: honours SRC, OUT, WORK, CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE and SANITIZER; the
#   tree is the one that this file lies in (there, $SRC/kverify). Coverage instrumentation in the
#   flags is taken out: fuzz/CMakeLists.txt gives it to what shall guide, and to nothing else.
#   CUDA's compiler comes by ci/setup.
# Usage: SRC=... OUT=... WORK=... CC=clang CXX=clang++ ci/oss_fuzz/build.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${SRC:?folder of the sources}" "${OUT:?folder for the targets}" "${WORK:?folder to build in}"
cc=${CC:-clang} cxx=${CXX:-clang++} sanitizer=${SANITIZER:-address}
engine=${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}

# Debian's fmt and xxHash are libstdc++'s.
without() {
  local word kept=()
  for word in $1; do
    case $word in
      -fsanitize=fuzzer-no-link | -fsanitize-coverage=* | -stdlib=libc++) ;;
      *) kept+=("$word") ;;
    esac
  done
  printf '%s' "${kept[*]}"
}
# The CUDA runtime's functions are found by name and called by the types of its binary interface,
# not of its headers, which code under test may have another version of: clang calls it undefined.
plain=-fno-sanitize=function
cflags="$(without "${CFLAGS:-}") $plain" cxxflags="$(without "${CXXFLAGS:-}") $plain"
printf 'oss_fuzz: %s build of %s with %s, flags: %s\n' "$sanitizer" "${root#"$SRC"/}" "$cxx" \
  "$cxxflags"

build=$WORK/kverify
cmake -S "$root" -B "$build" -G Ninja -DKV_NVCC="$("$root/ci/setup" --nvcc)" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$cflags" \
  -DCMAKE_CXX_FLAGS="$cxxflags" -DKV_FUZZ_CLANG="$(command -v "$cxx")" \
  -DKV_FUZZ_ENGINE="$engine" -DKV_PLAIN_DEVICE=ON > "$WORK/log" ||
  { cat "$WORK/log"; exit 3; }
ninja -C "$build" -j "${KV_JOBS:-$(nproc)}" --quiet fuzz_targets

mkdir -p "$OUT/lib/simt"
cp "$build"/lib/libkvattn_plugin.so "$build"/lib/libkvattn_host_plugin.so "$OUT/lib/"
cp -L "$build/lib/simt/libcudart.so.13" "$OUT/lib/simt/"
"$root/fuzz/make_seeds" "$root" "$build" "$WORK/seeds"
for name in attention history formats; do
  cp "$build/bin/fuzz_$name" "$OUT/"
  rm -f "$OUT/fuzz_${name}_seed_corpus.zip"
  seeds=("$WORK/seeds/$name"/*)
  # A target may have no seeds: corpus/ need not hold a case of its level.
  [[ ! -e ${seeds[0]} ]] || python3 -m zipfile -c "$OUT/fuzz_${name}_seed_corpus.zip" "${seeds[@]}"
  printf '[libfuzzer]\nmax_len = %d\nrss_limit_mb = 4096\n' 65536 > "$OUT/fuzz_$name.options"
done
cp "$root/fuzz/formats.dict" "$OUT/fuzz_formats.dict"
