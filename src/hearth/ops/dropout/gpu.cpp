// Keyed noise on a GPU: the same words as on a CPU, drawn on the device, so
// that nothing waits for the host.
#include "hearth/ops/compiled.h"
#include "hearth/ops/dropout/faces_impl.h"
#include "hearth/ops/random_words.h"

namespace hearth::ops {
namespace {

// A word for each element of rows of `dim`, from their keys: the one that the
// CPU's kernel uses, which takes four elements a counter.
mx::array words_of(
    const mx::array& keys,
    const mx::Shape& shape,
    std::uint64_t layer,
    mx::StreamOrDevice s
) {
  const int dim = shape.back(), blocks = (dim + 3) / 4;
  const int rows = static_cast<int>(keys.size());
  const auto own = folded_keys(mx::reshape(keys, {rows, 1}, s), layer, s);
  const auto counters =
      mx::reshape(mx::arange(0, blocks, mx::uint32, s), {1, blocks}, s);
  const auto four = random_words(own, counters, s);
  auto words = mx::stack({four.begin(), four.end()}, 2, s);
  words = mx::reshape(words, {rows, 4 * blocks}, s);
  if (dim % 4 != 0) words = mx::slice(words, {0, 0}, {rows, dim}, s);
  return mx::reshape(words, shape, s);
}

Arrays dropped(
    const Arrays& in,
    mx::StreamOrDevice s,
    std::uint32_t limit,
    float keep
) {
  const auto kept = mx::greater_equal(in[1], mx::array(limit), s);
  const auto x = mx::astype(in[0], mx::float32, s);
  const auto y =
      mx::where(kept, mx::multiply(x, mx::array(keep), s), mx::array(0.0f), s);
  return {mx::astype(y, in[0].dtype(), s)};
}

Arrays shifted(const Arrays& in, mx::StreamOrDevice s, float magnitude) {
  const auto whole = mx::view(in[1], mx::int32, s);
  const auto u =
      mx::multiply(mx::astype(whole, mx::float32, s), mx::array(0x1p-31f), s);
  const auto noise = mx::multiply(mx::array(magnitude), u, s);
  const auto x = mx::astype(in[0], mx::float32, s);
  return {mx::astype(mx::add(x, noise, s), in[0].dtype(), s)};
}

}  // namespace

// Its gradient draws the words again: kept, they would be four bytes for each
// element from here to there.
mx::array dropout_gpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  const auto drop = [noise, s](const mx::array& a, const mx::array& row_keys) {
    const auto words = words_of(row_keys, a.shape(), noise.layer, s);
    return compiled(
        dropped, {a, words}, s, drop_limit(noise.size), keep_factor(noise.size)
    )[0];
  };
  const auto forward = [drop](const Arrays& in) {
    return Arrays{drop(in[0], in[1])};
  };
  // The keys have no gradient; MLX wants an array in its place.
  const auto backward = [drop](
                            const Arrays& in, const Arrays& ct, const Arrays&
                        ) { return Arrays{drop(ct[0], in[1]), in[1]}; };
  return mx::custom_vjp(forward, backward)({x, keys})[0];
}

mx::array add_noise_gpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  const auto words = words_of(keys, x.shape(), noise.layer, s);
  return compiled(shifted, {x, words}, s, noise.size)[0];
}

}  // namespace hearth::ops
