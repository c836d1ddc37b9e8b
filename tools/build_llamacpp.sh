#!/usr/bin/env bash
# Builds llama.cpp natively for this machine from PyPI's llama-cpp-python sdist
# and our drivers over it, the peers of `hearth bench infer --peer` and `hearth
# bench quant --peer`. Development only. usage: tools/build_llamacpp.sh [JOBS];
# the results are llama_peer and llama_product in .deps/llamacpp. A second run
# does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.3.36
jobs=${1:-2}
root=.deps/llamacpp
drivers="llama_peer llama_product"
there=yes
for d in $drivers; do [ "$root/$d" -nt "tools/$d.cpp" ] || there=no; done
[ $there = yes ] && { echo "$drivers are there"; exit 0; }
mkdir -p "$root"
sdist=$root/llama_cpp_python-$version.tar.gz
if [ ! -f "$sdist" ]; then
  # pip prepares metadata with the package's own build requirements.
  python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python \
    -d "$root" "llama-cpp-python==$version"
fi
source=$root/llama_cpp_python-$version/vendor/llama.cpp
[ -d "$source" ] || tar xzf "$sdist" -C "$root"
cmake -S "$source" -B "$root/build" -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_CXX_FLAGS=-include $PWD/tools/llama_tiles_fix.h" \
  -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
  -DLLAMA_BUILD_COMMON=OFF >"$root/configure.log"
cmake --build "$root/build" --target llama -j "$jobs" >"$root/build.log" 2>&1
archives=$(find "$root/build" -name 'lib*.a')
# Archives that need each other: the linker goes round until all is found.
for d in $drivers; do
  c++ -std=c++20 -O2 -march=native "-DLLAMA_PEER_VERSION=\"$version\"" \
    -I"$source/include" -I"$source/ggml/include" "tools/$d.cpp" \
    -Wl,--start-group $archives -Wl,--end-group -fopenmp -lpthread -ldl \
    -o "$root/$d"
  echo "$root/$d"
done
