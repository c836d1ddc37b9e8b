#include "hearth/bench/onednn_limit.h"

#include <cstdlib>

#include "hearth/kernels/probe.h"

namespace hearth::bench {

void limit_onednn_isa() {
  if (!kernels::probe::amx() || kernels::probe::tiles_described()) return;
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
}

}  // namespace hearth::bench
