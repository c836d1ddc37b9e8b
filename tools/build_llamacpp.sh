#!/usr/bin/env bash
# Builds llama.cpp natively for this machine from PyPI's llama-cpp-python sdist
# and our drivers over it, the peers of `hearth bench infer --peer` and `hearth
# bench quant --peer`. Development only. usage: tools/build_llamacpp.sh [JOBS]
# [without-amx]; the results are llama_peer and llama_product in .deps/llamacpp.
# With the second word they are built for AVX-512 without AMX, into a folder of
# that name: the rival of HEARTH_ISA=avx512. A second run does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.3.36
jobs=${1:-2}
variant=${2:-}
root=.deps/llamacpp
out=$root build=$root/build
isa="-DGGML_NATIVE=ON"
native=-march=native
case $variant in
  "") ;;
  without-amx)
    out=$root/$variant build=$root/build-$variant
    isa="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON"
    isa="$isa -DGGML_F16C=ON -DGGML_BMI2=ON -DGGML_AVX512=ON"
    isa="$isa -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON"
    native=
    ;;
  *) echo "the variant must be without-amx, got '$variant'" >&2; exit 2 ;;
esac
drivers="llama_peer llama_product"
there=yes
for d in $drivers; do [ "$out/$d" -nt "tools/$d.cpp" ] || there=no; done
[ $there = yes ] && { echo "$drivers are there"; exit 0; }
mkdir -p "$out"
sdist=$root/llama_cpp_python-$version.tar.gz
if [ ! -f "$sdist" ]; then
  # pip prepares metadata with the package's own build requirements.
  python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python \
    -d "$root" "llama-cpp-python==$version"
fi
source=$root/llama_cpp_python-$version/vendor/llama.cpp
[ -d "$source" ] || tar xzf "$sdist" -C "$root"
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_CXX_FLAGS=-include $PWD/tools/llama_tiles_fix.h" \
  $isa -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
  -DLLAMA_BUILD_COMMON=OFF >"$build.configure.log"
cmake --build "$build" --target llama -j "$jobs" >"$build.log" 2>&1
archives=$(find "$build" -name 'lib*.a')
# Archives that need each other: the linker goes round until all is found.
for d in $drivers; do
  c++ -std=c++20 -O2 $native "-DLLAMA_PEER_VERSION=\"$version\"" \
    -I"$source/include" -I"$source/ggml/include" "tools/$d.cpp" \
    -Wl,--start-group $archives -Wl,--end-group -fopenmp -lpthread -ldl \
    -o "$out/$d"
  echo "$out/$d"
done
