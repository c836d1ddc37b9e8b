#include "hearth/models/load_diagnosis.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::models {
namespace {

// From this share of a start on, waiting for memory is what was slow: the
// other parts only show where it was felt.
constexpr double kPressure = 0.25;

bool is_mapped(const LoadReport& r) {
  return r.how == "mapped";
}

std::string rate(std::size_t bytes, double seconds) {
  return fmt::format(
      "{:.2f} GB/s",
      seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0.0
  );
}

void explain_read(const StartFacts& f, Diagnosis& d) {
  const LoadReport& r = f.load;
  if (d.part == SlowPart::mapping) {
    d.why = fmt::format(
        "{} of mapped pages were not in memory ({} faults that waited for the "
        "disk), {}",
        format_bytes(r.bytes), f.major_faults, rate(r.bytes, d.seconds)
    );
    d.advice =
        "large reads are faster for a file that is not in the page "
        "cache: leave the choice to hearth, or --read direct";
    return;
  }
  d.why = fmt::format(
      "{} came at {}", format_bytes(r.bytes), rate(r.bytes, r.seconds)
  );
  if (f.disk_bytes_per_second > 0) {
    d.why += fmt::format(
        "; hearth doctor measured {:.2f} GB/s", f.disk_bytes_per_second * 1e-9
    );
  }
  d.advice = r.how == "packed cache"
                 ? "it reads no more than it runs; a smaller format reads less"
                 : "hearth preload MODEL --quant 4 keeps what has to be read "
                   "four times smaller";
}

void explain_rest(const StartFacts& f, Diagnosis& d) {
  const StartPhase all[] = {
      {"open", f.open},
      {"header", f.header},
      {"tokenizer", f.tokenizer},
      {"build", f.build},
      {"first token", f.first_token}
  };
  const StartPhase& slowest =
      *std::ranges::max_element(all, {}, &StartPhase::seconds);
  d.why = fmt::format(
      "{} took {}, the weights {}", slowest.name,
      format_seconds(slowest.seconds), format_seconds(f.load.seconds)
  );
  d.advice = "a server loads once for many requests: hearth serve";
  if (slowest.name != "tokenizer" || f.tokenizer_file.empty()) return;
  d.advice =
      f.tokenizer_file.ends_with(".json")
          ? "what was parsed of a large tokenizer.json is kept: the "
            "next start is faster"
          : fmt::format(
                "{} is parsed at every start; {}",
                f.tokenizer_file.ends_with(".gguf") ? "a GGUF file's tokenizer"
                                                    : "a tokenizer.model",
                d.advice
            );
}

}  // namespace

double StartFacts::total() const {
  return open + header + tokenizer + build + load.seconds + first_token;
}

std::vector<StartPhase> phases(const StartFacts& f) {
  return {
      {"open", f.open},
      {"header", f.header},
      {"tokenizer", f.tokenizer},
      {"build", f.build},
      {"read", f.load.times.read},
      {"convert", f.load.times.convert},
      {"pack", f.load.times.pack},
      {"quantise", f.load.times.quantize},
      {"memory", f.load.times.memory},
      {"first token", f.first_token}
  };
}

std::string_view name_of(SlowPart part) {
  switch (part) {
    case SlowPart::disk:
      return "disk";
    case SlowPart::mapping:
      return "mapping";
    case SlowPart::memory_pressure:
      return "memory pressure";
    case SlowPart::quantising:
      return "quantising";
    case SlowPart::converting:
      return "converting";
    case SlowPart::initialising:
      return "initialising";
  }
  return "";
}

Diagnosis diagnose(const StartFacts& f) {
  const LoadTimes& t = f.load.times;
  const double rest = f.open + f.header + f.tokenizer + f.build + f.first_token;
  const SlowPart reading =
      is_mapped(f.load) ? SlowPart::mapping : SlowPart::disk;
  Diagnosis d{reading, t.read, 0, {}, {}};
  const auto consider = [&](SlowPart part, double seconds) {
    if (seconds > d.seconds) d = {part, seconds, 0, {}, {}};
  };
  consider(SlowPart::quantising, t.quantize);
  consider(SlowPart::converting, t.convert + t.pack);
  consider(SlowPart::initialising, rest);
  const double total = std::max(f.total(), 1e-9);
  if (f.memory_stall > kPressure * total) {
    d = {SlowPart::memory_pressure, std::min(f.memory_stall, total), 0, {}, {}};
  }
  d.share = d.seconds / total;
  switch (d.part) {
    case SlowPart::disk:
    case SlowPart::mapping:
      explain_read(f, d);
      break;
    case SlowPart::memory_pressure:
      d.why = fmt::format(
          "for {} the system had to free memory before it could go on",
          format_seconds(f.memory_stall)
      );
      d.advice = "--quant 4 or 8 needs less; so does ending what else runs";
      break;
    case SlowPart::quantising:
      d.why = fmt::format(
          "rounding {} took longer than reading it", format_bytes(f.load.bytes)
      );
      d.advice = "hearth preload does it once";
      break;
    case SlowPart::converting:
      d.why = fmt::format(
          "{} were converted and packed at {}", format_bytes(f.load.bytes),
          rate(f.load.bytes, d.seconds)
      );
      d.advice = "hearth preload does it once";
      break;
    case SlowPart::initialising:
      explain_rest(f, d);
  }
  return d;
}

}  // namespace hearth::models
