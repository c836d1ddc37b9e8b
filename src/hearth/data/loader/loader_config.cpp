// A loader's settings: what fits together, and what is filled in.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/loader/loader.h"
#include "hearth/data/loader/loader_engine_impl.h"

namespace hearth::data {
namespace {

void require(bool ok, const std::string& what) {
  if (!ok) throw UsageError("[data.loader] " + what);
}

}  // namespace

void check_loader_config(const LoaderConfig& c) {
  require(!c.shapes.empty(), "at least one row length is needed");
  // The constructor of ShapeSchedule refuses what does not fit together.
  [[maybe_unused]] const ShapeSchedule checked(
      c.shapes, c.guarantee, RandomKey()
  );
  require(
      c.shapes.size() == 1 || c.arrange != Arrange::kPad,
      "several lengths need packing or a stream"
  );
  require(
      c.ranks >= 1 && c.rank >= 0 && c.rank < c.ranks,
      fmt::format("rank must be in 0..{}, got {}", c.ranks - 1, c.rank)
  );
  auto check_length = [&](std::uint32_t length) {
    require(
        length > 0 && c.tokens_per_batch % length == 0 &&
            c.tokens_per_batch / length % static_cast<unsigned>(c.ranks) == 0 &&
            c.tokens_per_batch > 0,
        fmt::format(
            "tokens per batch must be a multiple of {} rows of {}, got {}",
            c.ranks, length, c.tokens_per_batch
        )
    );
  };
  for (const auto& s : c.shapes) check_length(s.length);
  for (const auto b : c.buckets) check_length(b);
  require(c.prefetch >= 1, "at least one batch must be prefetched");
  require(
      c.workers >= -1 && c.workers <= 256,
      fmt::format("workers must be -1 (choose) to 256, got {}", c.workers)
  );
  require(c.window >= 1, "the window must hold a document");
  for (const auto w : c.weights) {
    require(w > 0, "a mixing weight must be above 0");
  }
}

LoaderConfig complete_config(LoaderConfig c) {
  if (c.arrange == Arrange::kPad && !c.shapes.empty()) {
    const std::uint32_t longest = c.shapes[0].length;
    if (c.buckets.empty()) {
      // Halves, so that rows of pairs stay even.
      for (std::uint32_t b = longest; b % 2 == 0 && b >= 64;) {
        b /= 2;
        c.buckets.push_back(b);
      }
    }
    c.buckets.push_back(longest);
    std::sort(c.buckets.begin(), c.buckets.end());
    c.buckets.erase(
        std::unique(c.buckets.begin(), c.buckets.end()), c.buckets.end()
    );
    require(
        c.buckets.back() == longest, "a bucket must not pass the row length"
    );
  } else {
    require(c.buckets.empty(), "buckets need one document a row");
  }
  require(
      !c.cross_documents || c.arrange == Arrange::kStream,
      "rows across documents need a stream"
  );
  check_loader_config(c);
  return c;
}

std::vector<std::uint32_t> row_lengths(const LoaderConfig& config) {
  const LoaderConfig whole = complete_config(config);
  if (whole.arrange == Arrange::kPad) return whole.buckets;
  std::vector<std::uint32_t> lengths;
  for (const auto& shape : whole.shapes) lengths.push_back(shape.length);
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace hearth::data
