#include "hearth/ops/compiled.h"

#include <mlx/compile_impl.h>

namespace hearth::ops {

bool compiles(mx::StreamOrDevice s) {
  return mx::to_stream(s).device == mx::Device::gpu;
}

namespace internal {

Arrays run_compiled(
    std::function<Arrays(const Arrays&)> f,
    std::uintptr_t id,
    std::vector<std::uint64_t> constants,
    const Arrays& inputs,
    mx::Stream s
) {
  // MLX tells its entries apart by the default stream, not by the one that f
  // builds for.
  constants.push_back(static_cast<std::uint64_t>(s.index));
  const bool shapeless = false;
  return mx::detail::compile(std::move(f), id, shapeless, std::move(constants))(
      inputs
  );
}

}  // namespace internal
}  // namespace hearth::ops
