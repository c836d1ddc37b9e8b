#pragma once
// Numbers and names that nobody can foresee or has seen before.
#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth::serve {

std::uint64_t random_number();
// The seed of the nth of several that come from one: unlike those of its
// neighbours and of other seeds. The first is the seed itself.
std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t n);
// Letters and digits alone.
std::string random_word(std::size_t letters);

}  // namespace hearth::serve
