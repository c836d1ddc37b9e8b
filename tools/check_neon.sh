#!/bin/sh
# Compiles every kernel for NEON, warnings as errors, and where an emulator is
# installed runs tests/drivers/neon.cpp: NEON against the plain kernels.
# usage: check_neon.sh [STAMP]   where STAMP holds what passed already, not again
# Exit 77: no cross compiler (Debian's g++-aarch64-linux-gnu).
root=$(cd "$(dirname "$0")/.." && pwd)
stamp=${1:-}
compiler=$(command -v aarch64-linux-gnu-g++) || {
  echo "skipped: aarch64-linux-gnu-g++ is not installed"
  exit 77
}
seen=$({
  "$compiler" --version
  cat "$0" "$root/tests/drivers/neon.cpp"
  find "$root/src/hearth/kernels" "$root/src/hearth/base" -name '*.h' -o -name '*_isa.cpp' | sort | xargs cat
  command -v qemu-aarch64
} | cksum)
if [ -n "$stamp" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$seen" ]; then
  echo "passed before, and nothing changed since"
  exit 0
fi
passed() { [ -z "$stamp" ] || echo "$seen" > "$stamp"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c++20 -O1 -Wall -Wextra -Wshadow -Werror -Wno-maybe-uninitialized
  -Wno-uninitialized -Wno-psabi -fno-math-errno -fno-trapping-math -I$root/src"
compile() {
  # shellcheck disable=SC2086
  "$compiler" $flags -fno-exceptions -fno-rtti -DHEARTH_ISA="$1" -c "$2" \
    -o "$work/$1_$(echo "$2" | sed "s|$root/||; s|/|_|g").o"
}
for source in $(find "$root/src/hearth/kernels" -name '*_isa.cpp' ! -name 'table_isa.cpp'); do
  compile neon "$source" || exit 1
done
echo "every kernel compiles for NEON"
emulator=$(command -v qemu-aarch64) || {
  echo "not run: qemu-aarch64 is not installed"
  passed
  exit 0
}
for name in gemm attention optim; do
  compile generic "$root/src/hearth/kernels/${name}_isa.cpp" || exit 1
done
# shellcheck disable=SC2086
"$compiler" $flags -static "$root/tests/drivers/neon.cpp" \
  "$work"/*_kernels_gemm_isa.cpp.o "$work"/*_kernels_attention_isa.cpp.o \
  "$work"/*_kernels_optim_isa.cpp.o \
  -o "$work/neon" || exit 1
"$emulator" "$work/neon" && passed
