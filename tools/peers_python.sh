#!/bin/sh
# Runs a script with the Python that has the peers' packages, if it was set up.
peers=$(dirname "$0")/../.deps/peers/bin/python3
[ -x "$peers" ] || peers=python3
# Where CPUID hides how large tiles are (below leaf 0x1D), oneDNN's AMX code dies.
level=$(sed -n 's/^cpuid level[^0-9]*//p;T;q' /proc/cpuinfo 2>/dev/null)
if [ "${level:-29}" -lt 29 ] && grep -q amx_tile /proc/cpuinfo; then
  export ONEDNN_MAX_CPU_ISA="${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}"
fi
exec "$peers" "$@"
