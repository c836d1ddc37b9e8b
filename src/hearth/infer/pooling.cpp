#include "hearth/infer/pooling.h"

#include <cmath>

namespace hearth::infer {

void Pooler::add(std::span<const float> rows, int width) {
  const auto size = static_cast<std::size_t>(width);
  for (std::size_t at = 0; at < rows.size(); at += size) {
    const auto row = rows.subspan(at, size);
    if (pooling_ == Pooling::last || sum_.empty()) {
      sum_.assign(row.begin(), row.end());
    } else {
      for (std::size_t i = 0; i < size; ++i) sum_[i] += double{row[i]};
    }
    ++rows_;
  }
}

std::vector<float> Pooler::result() const {
  const double part =
      pooling_ == Pooling::mean && rows_ > 0 ? static_cast<double>(rows_) : 1;
  std::vector<float> out;
  out.reserve(sum_.size());
  for (const double v : sum_) out.push_back(static_cast<float>(v / part));
  return out;
}

void Pooler::clear() {
  sum_.clear();
  rows_ = 0;
}

void scale_to_unit(std::span<float> vector) {
  double squares = 0;
  for (const float v : vector) squares += double{v} * double{v};
  if (!(squares > 0)) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& v : vector) v = static_cast<float>(v * scale);
}

}  // namespace hearth::infer
