#pragma once
// This machine's measured peaks, kept in the cache folder with their date so
// that every later figure can state its distance from them. bench/measure.h
// does the measuring.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::hardware {

struct ArithmeticPeak {
  std::string isa, dtype;  // dtype: fp32, bf16, int8
  int threads = 1;
  double gops = 0;  // a multiply-add counts two
};

struct BandwidthPeak {
  std::string kind;  // "read", "copy" (bytes read plus bytes written)
  int threads = 1;
  double gb_s = 0;  // 1e9 bytes
};

// What a whole training step reaches of the best arithmetic peak of its type,
// by the width of the model.
struct TrainingShare {
  std::string dtype;  // fp32, bf16
  int threads = 1;
  int dim = 0;
  double share = 0;
};

struct Peaks {
  std::string date;     // UTC, ISO 8601
  std::string machine;  // what it was measured on; another one's do not count
  std::vector<ArithmeticPeak> arithmetic;
  std::vector<BandwidthPeak> bandwidth;
  std::vector<TrainingShare> training;
  std::optional<double> disk_read_gb_s;
  std::string disk_note;  // how, or why not
};

// The best rate over all instruction sets, or over one. 0 when not measured.
double best_gops(
    const Peaks& peaks,
    std::string_view dtype,
    int threads,
    std::string_view isa = {}
);
double bandwidth_gb_s(const Peaks& peaks, std::string_view kind, int threads);
// Narrowest model first; empty when not measured.
std::vector<TrainingShare> training_shares(
    const Peaks& peaks,
    std::string_view dtype,
    int threads
);

Json to_json(const Peaks& peaks);
Peaks peaks_from_json(const Json& json, std::string_view name);

// The stored peaks of this machine; nothing when there are none, or they are
// another machine's, or cannot be read.
std::optional<Peaks> load_peaks(std::string_view machine);
// Returns the path it wrote.
std::string store_peaks(const Peaks& peaks);

}  // namespace hearth::hardware
