#include "hearth/base/random.h"

#include <cmath>

#include "hearth/base/error.h"

namespace hearth {
namespace {

// SplitMix64's finaliser: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

RandomKey RandomKey::fold(std::uint64_t part) const {
  return RandomKey(mix(bits_ + 0x9e3779b97f4a7c15ull) ^ mix(~part));
}

RandomKey RandomKey::fold(std::string_view name) const {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return fold(hash);
}

std::array<std::uint32_t, 4> random_block(
    RandomKey key,
    std::uint64_t counter
) {
  // Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
  auto k0 = static_cast<std::uint32_t>(key.bits());
  auto k1 = static_cast<std::uint32_t>(key.bits() >> 32);
  std::array<std::uint32_t, 4> c{
      static_cast<std::uint32_t>(counter),
      static_cast<std::uint32_t>(counter >> 32), 0, 0
  };
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {
        static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0,
        static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1,
        static_cast<std::uint32_t>(p0)
    };
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

std::uint32_t RandomStream::next_u32() {
  const std::uint64_t block = position_ / 4;
  if (block != block_) {
    words_ = random_block(key_, block);
    block_ = block;
  }
  return words_[position_++ % 4];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t low = next_u32();
  return low | std::uint64_t{next_u32()} << 32;
}

std::uint64_t RandomStream::below(std::uint64_t n) {
  if (n == 0) throw UsageError("[base.below] n must be positive, got 0");
  // Values under `bias` would make the low results more likely.
  const std::uint64_t bias = (0 - n) % n;
  std::uint64_t x = next_u64();
  while (x < bias) x = next_u64();
  return x % n;
}

double RandomStream::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
}

double RandomStream::normal() {
  // The middle of one of 2^53 equal cells, so never 0 or 1.
  const double p = (static_cast<double>(next_u64() >> 11) + 0.5) * 0x1.0p-53;
  return normal_quantile(p);
}

namespace {

// log(x) by the series of atanh: exact operations only, error below 1e-15.
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // m in [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), t2 = t * t;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + exponent * 0.69314718055994530942;
}

double ratio(double r, const double (&top)[8], const double (&bottom)[8]) {
  double a = 0, b = 0;
  for (int i = 7; i >= 0; --i) {
    a = a * r + top[i];
    b = b * r + bottom[i];
  }
  return a / b;
}

}  // namespace

// Wichura, "Algorithm AS 241: the percentage points of the normal
// distribution", 1988: about 16 figures. Its three pairs of polynomials cover
// the middle, the shoulders and the tails.
double normal_quantile(double p) {
  static constexpr double kMiddleTop[8] = {
      3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
      3.3430575583588128105e4, 2.5090809287301226727e3
  };
  static constexpr double kMiddleBottom[8] = {
      1.0,
      4.2313330701600911252e1,
      6.8718700749205790830e2,
      5.3941960214247511077e3,
      2.1213794301586595867e4,
      3.9307895800092710610e4,
      2.8729085735721942674e4,
      5.2264952788528545610e3
  };
  static constexpr double kShoulderTop[8] = {
      1.42343711074968357734e0,  4.63033784615654529590e0,
      5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0,  2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4
  };
  static constexpr double kShoulderBottom[8] = {
      1.0,
      2.05319162663775882187e0,
      1.67638483018380384940e0,
      6.89767334985100004550e-1,
      1.48103976427480074590e-1,
      1.51986665636164571966e-2,
      5.47593808499534494600e-4,
      1.05075007164441684324e-9
  };
  static constexpr double kTailTop[8] = {
      6.65790464350110377720e0,  5.46378491116411436990e0,
      1.78482653991729133580e0,  2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7
  };
  static constexpr double kTailBottom[8] = {
      1.0,
      5.99832206555887937690e-1,
      1.36929880922735805310e-1,
      1.48753612908506148525e-2,
      7.86869131145613259100e-4,
      1.84631831751005468180e-5,
      1.42151175831644588870e-7,
      2.04426310338993978564e-15
  };
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    return q * ratio(0.180625 - q * q, kMiddleTop, kMiddleBottom);
  }
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? ratio(r - 1.6, kShoulderTop, kShoulderBottom)
                          : ratio(r - 5, kTailTop, kTailBottom);
  return q < 0 ? -x : x;
}

}  // namespace hearth
