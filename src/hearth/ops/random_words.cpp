#include "hearth/ops/random_words.h"

namespace hearth::ops {
namespace {

mx::array word(std::uint32_t x) {
  return mx::array(x, mx::uint32);
}
mx::array long_word(std::uint64_t x) {
  return mx::array(x, mx::uint64);
}

// SplitMix64's finaliser, as in base/random.cpp.
mx::array mixed(mx::array x, mx::StreamOrDevice s) {
  const auto fold_in = [&](int shift) {
    const auto by = long_word(static_cast<std::uint64_t>(shift));
    x = mx::bitwise_xor(x, mx::right_shift(x, by, s), s);
  };
  fold_in(30);
  x = mx::multiply(x, long_word(0xbf58476d1ce4e5b9ull), s);
  fold_in(27);
  x = mx::multiply(x, long_word(0x94d049bb133111ebull), s);
  fold_in(31);
  return x;
}

mx::array low_half(const mx::array& x, mx::StreamOrDevice s) {
  return mx::astype(
      mx::bitwise_and(x, long_word(0xffffffffull), s), mx::uint32, s
  );
}
mx::array high_half(const mx::array& x, mx::StreamOrDevice s) {
  return mx::astype(mx::right_shift(x, long_word(32), s), mx::uint32, s);
}

}  // namespace

mx::array folded_keys(
    const mx::array& keys,
    std::uint64_t part,
    mx::StreamOrDevice s
) {
  const auto own = mixed(mx::add(keys, long_word(0x9e3779b97f4a7c15ull), s), s);
  return mx::bitwise_xor(own, mixed(long_word(~part), s), s);
}

std::array<mx::array, 4> random_words(
    const mx::array& keys,
    const mx::array& counters,
    mx::StreamOrDevice s
) {
  constexpr std::uint32_t kFirst = 0xD2511F53, kSecond = 0xCD9E8D57;
  auto k0 = low_half(keys, s), k1 = high_half(keys, s);
  std::array<mx::array, 4> c{counters, word(0), word(0), word(0)};
  const auto product = [&](const mx::array& x, std::uint32_t by) {
    return mx::multiply(mx::astype(x, mx::uint64, s), long_word(by), s);
  };
  const auto mix_in = [&](const mx::array& a, const mx::array& b,
                          const mx::array& key) {
    return mx::bitwise_xor(mx::bitwise_xor(a, b, s), key, s);
  };
  for (int round = 0; round < 10; ++round) {
    const auto p0 = product(c[0], kFirst), p1 = product(c[2], kSecond);
    c = {
        mix_in(high_half(p1, s), c[1], k0), low_half(p1, s),
        mix_in(high_half(p0, s), c[3], k1), low_half(p0, s)
    };
    k0 = mx::add(k0, word(0x9E3779B9), s);
    k1 = mx::add(k1, word(0xBB67AE85), s);
  }
  return c;
}

}  // namespace hearth::ops
