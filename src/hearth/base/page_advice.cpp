#include "hearth/base/page_advice.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace hearth {
namespace {

#ifdef MADV_POPULATE_READ
constexpr int kPopulate = MADV_POPULATE_READ;
#elif defined(__linux__)
constexpr int kPopulate = 22;  // since Linux 5.14; older headers lack it
#else
constexpr int kPopulate = MADV_WILLNEED;
#endif

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Bytes of the first page that lie before the range.
std::size_t before(std::span<const std::byte> mapped) {
  return reinterpret_cast<std::uintptr_t>(mapped.data()) % page_size();
}

void advise(std::span<const std::byte> mapped, int advice) {
  if (mapped.empty()) return;
  const std::size_t extra = before(mapped);
  madvise(
      const_cast<std::byte*>(mapped.data()) - extra, mapped.size() + extra,
      advice
  );
}

}  // namespace

void expect_pages(std::span<const std::byte> mapped) {
  advise(mapped, MADV_WILLNEED);
}

void map_pages(std::span<const std::byte> mapped) {
  advise(mapped, kPopulate);
}

void drop_pages(std::span<const std::byte> mapped) {
  advise(mapped, MADV_DONTNEED);
}

std::size_t resident_bytes(std::span<const std::byte> mapped) {
  if (mapped.empty()) return 0;
  const std::size_t page = page_size(), extra = before(mapped);
  const std::size_t end = extra + mapped.size();
#if defined(__APPLE__)
  std::vector<char> there((end + page - 1) / page);
#else
  std::vector<unsigned char> there((end + page - 1) / page);
#endif
  auto* start = const_cast<std::byte*>(mapped.data()) - extra;
  if (mincore(start, end, there.data()) != 0) return 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if ((there[i] & 1) == 0) continue;
    bytes += std::min((i + 1) * page, end) - std::max(i * page, extra);
  }
  return bytes;
}

}  // namespace hearth
