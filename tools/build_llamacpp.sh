#!/usr/bin/env bash
# Builds llama.cpp natively for this machine from PyPI's llama-cpp-python sdist
# and our driver over it, the peer of `hearth bench infer --peer`. Development
# only. usage: tools/build_llamacpp.sh [JOBS]; the result is
# .deps/llamacpp/llama_peer. A second run does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.3.36
jobs=${1:-2}
root=.deps/llamacpp
out=$root/llama_peer
[ -x "$out" ] && [ "$out" -nt tools/llama_peer.cpp ] && { echo "$out is there"; exit 0; }
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
c++ -std=c++17 -O2 -march=native "-DLLAMA_PEER_VERSION=\"$version\"" \
  -I"$source/include" -I"$source/ggml/include" tools/llama_peer.cpp \
  -Wl,--start-group $archives -Wl,--end-group -fopenmp -lpthread -ldl -o "$out"
echo "$out"
"$out" /nonexistent 1 flash >/dev/null 2>&1 || true
