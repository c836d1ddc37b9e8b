// What a GPU runs of the small arithmetic. Sums and products are made in
// float32 and rounded once, as our kernels do.
#include "hearth/ops/arithmetic/faces_impl.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/compiled.h"
#include "hearth/ops/random_words.h"

namespace hearth::ops {
namespace {

Arrays scaled(const Arrays& in, mx::StreamOrDevice s) {
  return {mx::astype(
      mx::multiply(mx::astype(in[0], mx::float32, s), in[1], s), in[0].dtype(),
      s
  )};
}

Arrays total(const Arrays& in, mx::StreamOrDevice s) {
  auto sum = mx::astype(in[0], mx::float32, s);
  for (std::size_t i = 1; i < in.size(); ++i) {
    sum = mx::add(sum, mx::astype(in[i], mx::float32, s), s);
  }
  return {mx::astype(sum, in[0].dtype(), s)};
}

// Float32 bits and random words below 2^16 -> bfloat16. Adding a random amount
// below one step and cutting off rounds up as often as the rest asks for.
Arrays rounded(const Arrays& in, mx::StreamOrDevice s) {
  const auto sum = mx::add(mx::view(in[0], mx::uint32, s), in[1], s);
  const auto kept = mx::bitwise_and(sum, mx::array(0xffff0000u), s);
  const auto up_or_down = mx::view(kept, mx::float32, s);
  const auto y = mx::where(mx::isnan(in[0], s), in[0], up_or_down, s);
  return {mx::astype(y, mx::bfloat16, s)};
}

// The 16 bits for each of n elements that the CPU's kernel uses: it takes
// elements in groups of 128, whose 16 counters give 8 halves of words each.
mx::array noise(std::size_t n, RandomKey key, mx::StreamOrDevice s) {
  constexpr int kCounters = 16;
  const int groups = static_cast<int>((n + 127) / 128);
  const auto counters = mx::reshape(
      mx::arange(0, groups * kCounters, mx::uint32, s), {groups, 1, kCounters},
      s
  );
  Arrays halves;
  for (const auto& word : random_words(mx::array(key.bits()), counters, s)) {
    halves.push_back(mx::bitwise_and(word, mx::array(0xffffu), s));
    halves.push_back(mx::right_shift(word, mx::array(16u), s));
  }
  const auto all = mx::reshape(mx::concatenate(halves, 1, s), {-1}, s);
  return mx::slice(all, {0}, {static_cast<int>(n)}, s);
}

}  // namespace

mx::array add_gpu(
    const mx::array& a,
    const mx::array& b,
    mx::StreamOrDevice s
) {
  return mx::add(a, mx::astype(b, a.dtype(), s), s);
}

mx::array scale_gpu(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
) {
  const auto f = mx::stop_gradient(mx::astype(factor, mx::float32, s), s);
  return compiled(scaled, {x, f}, s)[0];
}

mx::array cast_stochastic_gpu(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s
) {
  const auto forward = [key, s](const Arrays& in) {
    const auto bits =
        mx::reshape(noise(in[0].size(), key, s), in[0].shape(), s);
    return compiled(rounded, {in[0], bits}, s);
  };
  const auto backward = [s](const Arrays&, const Arrays& ct, const Arrays&) {
    return Arrays{mx::astype(ct[0], mx::float32, s)};
  };
  return mx::custom_vjp(forward, backward)({x})[0];
}

// MLX would add the gradients of a shared array pair by pair, each sum rounded.
Arrays fork_gpu(const mx::array& x, int n, mx::StreamOrDevice s) {
  const auto forward = [n](const Arrays& in) {
    return Arrays(static_cast<std::size_t>(n), in[0]);
  };
  const auto backward = [s](const Arrays&, const Arrays& ct, const Arrays&) {
    return compiled(total, ct, s);
  };
  return mx::custom_vjp(forward, backward)({x});
}

}  // namespace hearth::ops
