#include "hearth/models/read_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/page_advice.h"
#include "hearth/base/units.h"
#include "hearth/io/file_source.h"

namespace hearth::models {
namespace {

// Below this a ring of buffers costs more than it saves.
constexpr std::size_t kSmall = std::size_t{64} << 20;
// From here on copying through the page cache costs more time than the disk
// takes, and the processor has better to do.
constexpr double kFastDisk = 1.5e9;

}  // namespace

ReadChoice choose_read(const ReadFacts& f) {
  using io::ReadMode;
  if (f.bytes < kSmall) return {ReadMode::mapped, "it is small"};
  if (f.resident >= f.bytes / 4 * 3) {
    return {ReadMode::mapped, "it lies in the page cache already"};
  }
  if (f.free_memory > 0 && f.bytes > f.free_memory / 2) {
    return {
        ReadMode::direct, fmt::format(
                              "{} would fill the {} of free memory",
                              format_bytes(f.bytes), format_bytes(f.free_memory)
                          )
    };
  }
  if (f.disk_bytes_per_second >= kFastDisk) {
    return {
        ReadMode::direct,
        fmt::format(
            "the disk gives {:.1f} GB/s, faster than copies through the page "
            "cache",
            f.disk_bytes_per_second * 1e-9
        )
    };
  }
  return {
      ReadMode::buffered,
      f.disk_bytes_per_second > 0
          ? fmt::format(
                "the disk gives {:.1f} GB/s, and the page cache keeps it for "
                "the next start",
                f.disk_bytes_per_second * 1e-9
            )
          : "the page cache keeps it for the next start; hearth doctor has "
            "not measured the disk"
  };
}

std::size_t resident_bytes(const io::ModelSource& source) {
  // A window in every stretch tells enough: pages come and go by many.
  constexpr std::size_t kStretch = std::size_t{1} << 20;
  constexpr std::size_t kWindow = std::size_t{64} << 10;
  double resident = 0;
  for (const io::TensorInfo& t : source.tensors()) {
    if (!io::is_plain(source, t) || t.bytes == 0) continue;
    const auto data = source.data(t);
    std::size_t looked = 0, found = 0;
    for (std::size_t at = 0; at < t.bytes; at += kStretch) {
      const auto part = data.bytes.subspan(at, std::min(kWindow, t.bytes - at));
      looked += part.size();
      found += hearth::resident_bytes(part);
    }
    resident += static_cast<double>(t.bytes) * static_cast<double>(found) /
                static_cast<double>(looked);
  }
  return static_cast<std::size_t>(resident);
}

}  // namespace hearth::models
