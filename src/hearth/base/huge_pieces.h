#pragma once
// Large pages for buffers smaller than one. A model has hundreds of matrices
// of a megabyte or less; on ordinary pages a step of decoding, which reads each
// once, finds the address of every fourth kilobyte anew. Here they lie side by
// side in stretches of large pages.
//
// For what is kept: memory of a piece goes back to the system with the piece,
// but its addresses only with the last piece of its stretch.
#include <cstddef>

namespace hearth {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Pages that read as zeros, on a large page's boundary, and large where the
// system has such; null when it refuses. munmap ends them.
std::byte* map_huge(std::size_t bytes) noexcept;

// 64-byte aligned and zero; null when the system refuses. From any thread.
std::byte* take_huge_piece(std::size_t bytes) noexcept;
// Takes the address and the size of one take_huge_piece().
void free_huge_piece(std::byte* piece, std::size_t bytes) noexcept;
// How many stretches hold a piece, for tests.
std::size_t huge_stretches() noexcept;

}  // namespace hearth
