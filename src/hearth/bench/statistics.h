#pragma once
// Robust statistics of timings: medians and intervals, never means.
#include <span>
#include <vector>

namespace hearth::bench {

double median(std::span<const double> values);
// Linear interpolation between order statistics; q in [0, 1].
double quantile(std::span<const double> values, double q);
// Half the distance between the quartiles, over the median.
double spread(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;
};
// 95 % bootstrap interval of median(a) / median(b), from a fixed seed.
Interval ratio_interval(
    std::span<const double> a,
    std::span<const double> b,
    int resamples = 2000
);

}  // namespace hearth::bench
