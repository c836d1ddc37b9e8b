#include "hearth/base/huge_pieces.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "hearth/base/rounding.h"

namespace hearth {
namespace {

constexpr std::size_t kStretch = 16 * kHugePage;
constexpr std::size_t kLine = 64;

// Pieces are cut one after the other and never filled again.
struct Stretch {
  std::byte* begin = nullptr;
  std::size_t bytes = 0, used = 0, pieces = 0;
};

std::mutex mutex;
std::vector<Stretch>& stretches() {
  static auto* all = new std::vector<Stretch>;  // outlives every static buffer
  return *all;
}

// Whole pages within a piece; its neighbours' bytes stay.
void give_back_pages(std::byte* piece, std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(piece);
  const std::size_t skip = round_up(at, page) - at;
  if (bytes <= skip) return;
  const std::size_t whole = (bytes - skip) / page * page;
  if (whole > 0) madvise(piece + skip, whole, MADV_DONTNEED);
}

}  // namespace

std::byte* map_huge(std::size_t bytes) noexcept {
  void* p = mmap(
      nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
  );
  if (p == MAP_FAILED) return nullptr;
  // Give back what lies before and behind the aligned part.
  auto* start = static_cast<std::byte*>(p);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) munmap(start, before);
  if (before < kHugePage) munmap(start + before + bytes, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(start + before, bytes, MADV_HUGEPAGE);
#endif
  return start + before;
}

std::byte* take_huge_piece(std::size_t bytes) noexcept {
  bytes = round_up(bytes, kLine);
  const std::lock_guard lock(mutex);
  auto& all = stretches();
  const auto room = std::ranges::find_if(all, [&](const Stretch& s) {
    return s.bytes - s.used >= bytes;
  });
  if (room != all.end()) {
    std::byte* piece = room->begin + room->used;
    room->used += bytes, ++room->pieces;
    return piece;
  }
  const std::size_t size = std::max(kStretch, round_up(bytes, kHugePage));
  std::byte* begin = map_huge(size);
  if (begin != nullptr) all.push_back({begin, size, bytes, 1});
  return begin;
}

void free_huge_piece(std::byte* piece, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex);
  auto& all = stretches();
  const auto home = std::ranges::find_if(all, [&](const Stretch& s) {
    return piece >= s.begin && piece < s.begin + s.bytes;
  });
  if (--home->pieces > 0) return give_back_pages(piece, bytes);
  munmap(home->begin, home->bytes);
  all.erase(home);
}

std::size_t huge_stretches() noexcept {
  const std::lock_guard lock(mutex);
  return stretches().size();
}

}  // namespace hearth
