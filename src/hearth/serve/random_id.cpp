#include "hearth/serve/random_id.h"

#include <random>
#include <string_view>

#include "hearth/base/random.h"

namespace hearth::serve {

std::uint64_t random_number() {
  static thread_local std::mt19937_64 source = [] {
    std::random_device device;
    std::seed_seq seeds{device(), device(), device(), device()};
    return std::mt19937_64(seeds);
  }();
  return source();
}

std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t n) {
  return n == 0 ? seed : RandomKey(seed).fold(n).bits();
}

std::string random_word(std::size_t letters) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::string out;
  while (out.size() < letters) {
    out += kLetters[random_number() % kLetters.size()];
  }
  return out;
}

}  // namespace hearth::serve
