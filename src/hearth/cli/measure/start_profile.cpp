#include "hearth/cli/measure/start_profile.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::cli {
namespace {

using models::LoadPart;
using models::LoadTimes;

std::string rate(const LoadPart& p) {
  const double r = p.seconds > 0 ? static_cast<double>(p.bytes) / p.seconds : 0;
  return fmt::format("{:.2f}", r * 1e-9);
}

std::string parts_table(const char* title, const std::vector<LoadPart>& parts) {
  std::string out = fmt::format(
      "\n{:<34} {:>7} {:>10} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
      title, "tensors", "bytes", "s", "GB/s", "read", "convert", "pack",
      "quantise", "memory"
  );
  for (const LoadPart& p : parts) {
    const std::string name = std::filesystem::path(p.name).filename().string();
    out += fmt::format(
        "{:<34} {:>7} {:>10} {:>8.3f} {:>7} {:>8.3f} {:>8.3f} {:>8.3f} "
        "{:>8.3f} {:>8.3f}\n",
        name.substr(0, 34), p.tensors, format_bytes(p.bytes), p.seconds,
        rate(p), p.times.read, p.times.convert, p.times.pack, p.times.quantize,
        p.times.memory
    );
  }
  return out;
}

Json times_json(const LoadTimes& t) {
  return {
      {"read_s", t.read},
      {"convert_s", t.convert},
      {"pack_s", t.pack},
      {"quantise_s", t.quantize},
      {"memory_s", t.memory}
  };
}

Json parts_json(const std::vector<LoadPart>& parts) {
  Json out = Json::array();
  for (const LoadPart& p : parts) {
    Json one = {
        {"name", p.name},
        {"tensors", p.tensors},
        {"bytes", p.bytes},
        {"begin_s", p.begin},
        {"seconds", p.seconds}
    };
    one.update(times_json(p.times));
    out.push_back(std::move(one));
  }
  return out;
}

// Memory over time at no more than that many points.
std::vector<profile::ProcessSample> thinned(
    const std::vector<profile::ProcessSample>& all,
    std::size_t most
) {
  if (all.size() <= most) return all;
  std::vector<profile::ProcessSample> out;
  for (std::size_t i = 0; i < most; ++i) {
    out.push_back(all[i * (all.size() - 1) / (most - 1)]);
  }
  return out;
}

// What is held beside the weights when they are loaded is on the first line,
// what was held for the time of loading too.
std::string memory_text(const StartProfile& p) {
  const std::size_t more = p.peak_held > p.held ? p.peak_held - p.held : 0;
  return fmt::format(
      "\nmemory   the weights take {}{}; {} are accounted for when they are "
      "loaded, at most {} before: {} more, {} of it to read into\n"
      "         as the system counts {} at the start, {} when they are loaded "
      "({} without pages of files), {} at most up to the first token; {} page "
      "faults waited for the disk\n",
      format_bytes(p.model_bytes), p.mapped ? " as pages of a mapped file" : "",
      format_bytes(p.held), format_bytes(p.peak_held), format_bytes(more),
      format_bytes(p.facts.load.window), format_bytes(p.resident_before),
      format_bytes(p.resident), format_bytes(p.anonymous),
      format_bytes(p.peak_resident), p.facts.major_faults
  );
}

}  // namespace

std::string to_text(const StartProfile& p) {
  const double total = p.facts.total();
  std::string out = fmt::format(
      "{}: {} by {} ({})\n\n{:<14} {:>9} {:>6}\n", p.model,
      format_bytes(p.facts.load.bytes), p.facts.load.how, p.facts.load.why,
      "phase", "s", "%"
  );
  for (const auto& phase : models::phases(p.facts)) {
    out += fmt::format(
        "{:<14} {:>9.4f} {:>6.1f}\n", phase.name, phase.seconds,
        100 * phase.seconds / std::max(total, 1e-9)
    );
  }
  out += fmt::format("{:<14} {:>9.4f}\n", "to first token", total);
  out += parts_table("shard", p.facts.load.shards);
  out += parts_table("class", p.facts.load.classes);
  out += memory_text(p);
  out += fmt::format(
      "\nslow: {}, {} ({:.0f} %): {}\n      {}\n", name_of(p.slow.part),
      format_seconds(p.slow.seconds), 100 * p.slow.share, p.slow.why,
      p.slow.advice
  );
  return out;
}

Json to_json(const StartProfile& p) {
  const auto& load = p.facts.load;
  Json phases = Json::array();
  for (const auto& phase : models::phases(p.facts)) {
    phases.push_back({{"name", phase.name}, {"seconds", phase.seconds}});
  }
  Json memory = Json::array();
  for (const auto& s : thinned(p.memory, 500)) {
    memory.push_back(
        {{"seconds", s.seconds},
         {"resident", s.resident},
         {"anonymous", s.anonymous}}
    );
  }
  return {
      {"model", p.model},
      {"quant", p.quant},
      {"how", load.how},
      {"why", load.why},
      {"bytes", load.bytes},
      {"seconds", p.facts.total()},
      {"phases", phases},
      {"shards", parts_json(load.shards)},
      {"classes", parts_json(load.classes)},
      {"kept_dense", load.kept_dense},
      {"memory",
       {{"model_bytes", p.model_bytes},
        {"mapped", p.mapped},
        {"accounted", p.held},
        {"peak_accounted", p.peak_held},
        {"resident_before", p.resident_before},
        {"resident", p.resident},
        {"anonymous", p.anonymous},
        {"peak_resident", p.peak_resident},
        {"read_buffers", load.window},
        {"major_faults", p.facts.major_faults},
        {"stall_s", p.facts.memory_stall},
        {"timeline", memory}}},
      {"slow",
       {{"part", name_of(p.slow.part)},
        {"seconds", p.slow.seconds},
        {"share", p.slow.share},
        {"why", p.slow.why},
        {"advice", p.slow.advice}}}
  };
}

}  // namespace hearth::cli
