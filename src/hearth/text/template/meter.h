#pragma once
// Bounds on what one rendering may cost. A hostile template can double a list
// a hundred times in a hundred lines, so everything that walks or copies
// values is charged for, against the meter of the rendering on this thread.
#include <cstddef>
#include <cstdint>

#include "hearth/base/effort.h"
#include "hearth/text/template/limits.h"

namespace hearth::text::jinja {

class Meter {
 public:
  // The work counts to `effort` as well, where there is one.
  explicit Meter(const TemplateLimits& limits, Effort* effort = nullptr);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // Work units: one per node evaluated, item walked, or 64 bytes scanned.
  static void work(std::size_t units = 1);
  // Looking for a part in a text: quadratic when the text is all beginnings.
  static void search(std::size_t text_size, std::size_t part_size) {
    work(text_size / 64 + text_size / 64 * (part_size / 32) + 1);
  }
  // Bytes about to be allocated. Never given back: the sum bounds the peak.
  static void allocate(std::size_t bytes);
  // Nesting of evaluation, counted by Nested.
  class Nested {
   public:
    Nested();
    ~Nested();
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
  };

 private:
  static thread_local Meter* active_;
  TemplateLimits limits_;
  Effort* effort_;
  Meter* outer_;
  std::size_t work_ = 0;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

}  // namespace hearth::text::jinja
