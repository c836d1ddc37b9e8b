#include "hearth/cli/version.h"

#include <fmt/format.h>

#include "hearth/kernels/table.h"
#include "hearth/ops/device.h"

namespace hearth::cli {

std::string version_text() {
  return fmt::format(
      "hearth {} (MLX {}, instruction set {}, {} build, {})\n", HEARTH_VERSION,
      ops::mlx_version(), kernels::best().isa, HEARTH_BUILD_TYPE,
      HEARTH_COMPILER
  );
}

}  // namespace hearth::cli
