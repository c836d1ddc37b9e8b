#include "hearth/nn/init.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/random.h"
#include "hearth/ops/leaf.h"

namespace hearth::nn {
namespace {

// Long arrays are cut into pieces of their own keys, filled by all threads.
template <class Draw>
void fill(float* to, std::size_t count, RandomKey key, Draw draw) {
  constexpr std::size_t kPiece = 4096;
  ops::current_execution().pool.parallel_for(
      (count + kPiece - 1) / kPiece, 4,
      [&](std::size_t begin, std::size_t end) {
        for (std::size_t piece = begin; piece < end; ++piece) {
          RandomStream random(key.fold(piece));
          const std::size_t stop = std::min(count, (piece + 1) * kPiece);
          for (std::size_t i = piece * kPiece; i < stop; ++i) {
            to[i] = static_cast<float>(draw(random));
          }
        }
      }
  );
}

}  // namespace

void initialize(Weight& p, std::uint64_t seed, int layers) {
  auto leaf =
      ops::make_leaf(p.shape, mx::float32, MemoryZone::named("weights"));
  float* to = leaf.data<float>();
  const RandomKey key = RandomKey(seed).fold("init").fold(p.name);
  switch (p.init) {
    case Init::zeros:
      break;
    case Init::ones:
      std::fill_n(to, leaf.size(), 1.0f);
      break;
    case Init::constant:
      std::fill_n(to, leaf.size(), p.constant);
      break;
    case Init::normal:
    case Init::small_normal: {
      const double depth = p.init == Init::small_normal ? 2.0 * layers : 1.0;
      const double deviation = 0.02 / std::sqrt(depth);
      fill(to, leaf.size(), key, [&](RandomStream& random) {
        return deviation * random.normal();
      });
      break;
    }
    case Init::uniform_fan_in: {
      const double bound = 1 / std::sqrt(static_cast<double>(p.shape.back()));
      fill(to, leaf.size(), key, [&](RandomStream& random) {
        return bound * (2 * random.uniform() - 1);
      });
      break;
    }
  }
  p.set(std::move(leaf));
}

}  // namespace hearth::nn
