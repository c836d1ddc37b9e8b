// hearth data synth: generated training data.
#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/data/synth/synth.h"

namespace hearth::cli {

void cmd_data_synth(Context& context, const std::vector<std::string>& words) {
  std::string kind = "stories";
  std::int64_t count = 1000;
  Args args(
      "data synth",
      "Write seeded training data with known answers as JSONL, the same bytes "
      "on every machine.",
      context.common
  );
  args.choice("--kind", kind, {"stories", "arith", "tools"}, "What to write");
  args.option("--n", count, "How many records");
  args.example(
      "hearth data synth --kind stories --n 100000 > stories.jsonl",
      "enough to train a small model on"
  );
  args.example(
      "hearth data synth --kind tools --n 1000 --seed 1 | sha256sum",
      "the same digest everywhere"
  );
  if (!context.parse(args, words)) return;
  if (count < 0) {
    throw UsageError("--n must not be negative, got " + std::to_string(count));
  }
  const data::SynthKind chosen = data::synth_kind(kind);
  std::string buffer;
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  if (context.common.json) {
    buffer = "{\"schema\": \"hearth.data.synth/1\", \"records\": [\n";
  }
  for (std::int64_t i = 0; i < count; ++i) {
    data::append_synth_record(
        chosen, context.common.seed, static_cast<std::uint64_t>(i), buffer
    );
    if (context.common.json && i + 1 < count) buffer.back() = ',';
    if (buffer.size() >= kFlush) {
      context.print(buffer);
      buffer.clear();
    }
  }
  if (context.common.json) buffer += "]}\n";
  context.print(buffer);
}

}  // namespace hearth::cli
