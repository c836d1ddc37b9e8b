#pragma once
// How many files the system lets this process have open, which bounds its
// connections.
#include <cstddef>

namespace hearth::serve {

// Raises the limit of open files towards what so many connections need, as far
// as this process may, and says how many connections then fit.
std::size_t connections_that_fit(std::size_t wanted);

}  // namespace hearth::serve
