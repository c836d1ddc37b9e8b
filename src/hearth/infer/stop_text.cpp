#include "hearth/infer/stop_text.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::infer {

StopText::StopText(std::vector<std::string> stops, MayEnd may_end)
    : stops_(std::move(stops)), may_end_(std::move(may_end)) {
  if (std::ranges::any_of(stops_, &std::string::empty)) {
    throw UsageError("[infer.StopText] a stop string must not be empty");
  }
}

// Where in what is held the first stop string lies that ends the text.
std::size_t StopText::find_end() const {
  for (std::size_t from = 0;; ++from) {
    std::size_t first = std::string::npos;
    for (const auto& stop : stops_) {
      first = std::min(first, held_.find(stop, from));
    }
    if (first == std::string::npos || !may_end_) return first;
    if (may_end_(shown_ + held_.substr(0, first))) return first;
    from = first;
  }
}

std::string StopText::show(std::size_t bytes) {
  std::string out = held_.substr(0, bytes);
  held_.erase(0, bytes);
  if (may_end_) shown_ += out;
  return out;
}

std::string StopText::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  const std::size_t end = find_end();
  if (end != std::string::npos) {
    found_ = true;
    std::string out = show(end);
    held_.clear();
    return out;
  }
  std::size_t keep = 0;
  for (const auto& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > keep;
         --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) keep = n;
    }
  }
  return show(held_.size() - keep);
}

std::string StopText::finish() {
  return std::exchange(held_, {});
}

}  // namespace hearth::infer
