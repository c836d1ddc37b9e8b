#pragma once
// The most memory this process had resident, as the system counts it: what
// another process is held against.
#include <cstddef>

namespace hearth::hardware {

// Gives freed pages back and starts counting anew. False where the system does
// not let us: then the peak is that of the whole life of the process.
bool reset_process_peak();
std::size_t process_peak();

}  // namespace hearth::hardware
