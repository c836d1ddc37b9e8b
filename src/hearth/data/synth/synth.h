#pragma once
// Seeded training data with known right answers, so that every feature runs
// with no download: small stories, arithmetic with worked steps, tool-call
// dialogues. Record i is a pure function of (kind, seed, i): the same bytes on
// every platform, any number of records in constant memory.
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::data {

enum class SynthKind {
  kStories,  // {"text"}
  kArith,    // {"prompt", "completion", "answer"}
  kTools,    // {"messages", "tools", "expect": {"tool", "arguments"} or null}
};

// "stories", "arith" or "tools"; UsageError names the nearest otherwise.
SynthKind synth_kind(std::string_view name);

// Appends record `index` as one line of JSON with its newline.
void append_synth_record(
    SynthKind kind,
    std::uint64_t seed,
    std::uint64_t index,
    std::string& out
);

}  // namespace hearth::data
