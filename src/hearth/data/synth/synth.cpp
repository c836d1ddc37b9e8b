#include "hearth/data/synth/synth.h"

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/data/read/json_string.h"
#include "hearth/data/synth/parts_impl.h"

namespace hearth::data {
namespace synth {
namespace {

bool is_vowel(char c) {
  return std::string_view("aeiouAEIOU").find(c) != std::string_view::npos;
}

}  // namespace

void fill(std::string& out, std::string_view pattern, const Slots& slots) {
  while (true) {
    const std::size_t at = pattern.find('$');
    out += pattern.substr(0, at);
    if (at == std::string_view::npos) return;
    pattern.remove_prefix(at + 1);
    bool capital = false, article = false;
    while (pattern.front() == '^' || pattern.front() == '&') {
      (pattern.front() == '^' ? capital : article) = true;
      pattern.remove_prefix(1);
    }
    const std::string_view text = slots[pattern.front()];
    pattern.remove_prefix(1);
    const std::size_t start = out.size();
    if (article) out += is_vowel(text.front()) ? "an " : "a ";
    out += text;
    const bool small = out[start] >= 'a' && out[start] <= 'z';
    if (capital && small) out[start] = static_cast<char>(out[start] - 32);
  }
}

std::string filled(std::string_view pattern, const Slots& slots) {
  std::string out;
  fill(out, pattern, slots);
  return out;
}

void append_json_field(
    std::string& out,
    std::string_view name,
    std::string_view text
) {
  append_json_string(out, name);
  out += ": ";
  append_json_string(out, text);
}

}  // namespace synth

SynthKind synth_kind(std::string_view name) {
  if (name == "stories") return SynthKind::kStories;
  if (name == "arith") return SynthKind::kArith;
  if (name == "tools") return SynthKind::kTools;
  static const std::string kKnown[] = {"stories", "arith", "tools"};
  throw UsageError(
      "[data.synth] kind must be stories, arith or tools, got '" +
      std::string(name) + "'" + did_you_mean(name, kKnown)
  );
}

void append_synth_record(
    SynthKind kind,
    std::uint64_t seed,
    std::uint64_t index,
    std::string& out
) {
  const RandomKey root(seed);
  switch (kind) {
    case SynthKind::kStories:
      synth::append_story(root.fold("stories").fold(index), out);
      break;
    case SynthKind::kArith:
      synth::append_arith(root.fold("arith").fold(index), out);
      break;
    case SynthKind::kTools:
      synth::append_tools(root.fold("tools").fold(index), out);
      break;
  }
  out += '\n';
}

}  // namespace hearth::data
