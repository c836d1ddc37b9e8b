#include "hearth/hardware/peaks.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::hardware {
namespace {

constexpr std::string_view kSchema = "hearth.peaks/1";

std::string peaks_path() {
  return env::cache_folder() + "/peaks.json";
}

}  // namespace

double best_gops(
    const Peaks& peaks,
    std::string_view dtype,
    int threads,
    std::string_view isa
) {
  double best = 0;
  for (const ArithmeticPeak& p : peaks.arithmetic) {
    const bool fits = p.dtype == dtype && p.threads == threads;
    if (fits && (isa.empty() || p.isa == isa)) best = std::max(best, p.gops);
  }
  return best;
}

double bandwidth_gb_s(const Peaks& peaks, std::string_view kind, int threads) {
  for (const BandwidthPeak& p : peaks.bandwidth) {
    if (p.kind == kind && p.threads == threads) return p.gb_s;
  }
  return 0;
}

std::vector<TrainingShare> training_shares(
    const Peaks& peaks,
    std::string_view dtype,
    int threads
) {
  std::vector<TrainingShare> found;
  for (const TrainingShare& t : peaks.training) {
    if (t.dtype == dtype && t.threads == threads) found.push_back(t);
  }
  std::ranges::sort(found, {}, &TrainingShare::dim);
  return found;
}

Json to_json(const Peaks& peaks) {
  Json j = {{"date", peaks.date}, {"machine", peaks.machine}};
  j["arithmetic"] = Json::array();
  for (const ArithmeticPeak& p : peaks.arithmetic) {
    j["arithmetic"].push_back(
        {{"isa", p.isa},
         {"dtype", p.dtype},
         {"threads", p.threads},
         {"gops", p.gops}}
    );
  }
  j["bandwidth"] = Json::array();
  for (const BandwidthPeak& p : peaks.bandwidth) {
    j["bandwidth"].push_back(
        {{"kind", p.kind}, {"threads", p.threads}, {"gb_s", p.gb_s}}
    );
  }
  for (const TrainingShare& t : peaks.training) {
    j["training"].push_back(
        {{"dtype", t.dtype},
         {"threads", t.threads},
         {"dim", t.dim},
         {"share", t.share}}
    );
  }
  if (peaks.disk_read_gb_s) j["disk_read_gb_s"] = *peaks.disk_read_gb_s;
  j["disk_note"] = peaks.disk_note;
  return j;
}

Peaks peaks_from_json(const Json& json, std::string_view name) {
  try {
    Peaks p;
    p.date = json.at("date");
    p.machine = json.at("machine");
    for (const Json& a : json.at("arithmetic")) {
      p.arithmetic.push_back(
          {a.at("isa"), a.at("dtype"), a.at("threads"), a.at("gops")}
      );
    }
    for (const Json& b : json.at("bandwidth")) {
      p.bandwidth.push_back({b.at("kind"), b.at("threads"), b.at("gb_s")});
    }
    // Records of earlier versions have none.
    for (const Json& t : json.value("training", Json::array())) {
      p.training.push_back(
          {t.at("dtype"), t.at("threads"), t.at("dim"), t.at("share")}
      );
    }
    if (json.contains("disk_read_gb_s"))
      p.disk_read_gb_s = json["disk_read_gb_s"];
    p.disk_note = json.value("disk_note", "");
    return p;
  } catch (const nlohmann::json::exception& e) {
    throw FormatError(
        fmt::format("{}: not a record of peaks: {}", name, e.what())
    );
  }
}

std::optional<Peaks> load_peaks(std::string_view machine) {
  const std::string path = peaks_path();
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const Json json = read_json_file(path);
    if (!json.is_object() || json.value("schema", "") != kSchema) {
      return std::nullopt;
    }
    Peaks peaks = peaks_from_json(json, path);
    if (peaks.machine != machine) return std::nullopt;
    return peaks;
  } catch (const Error& e) {
    // A damaged cache is measured anew, never fatal.
    log_warning("{}; run hearth doctor --measure again", e.what());
    return std::nullopt;
  }
}

std::string store_peaks(const Peaks& peaks) {
  const std::string path = peaks_path();
  std::error_code error;
  std::filesystem::create_directories(env::cache_folder(), error);
  Json json = {{"schema", kSchema}};
  const Json body = to_json(peaks);
  for (const auto& [key, value] : body.items()) json[key] = value;
  write_file_atomically(path, to_json_text(json) + "\n");
  return path;
}

}  // namespace hearth::hardware
