// hearth profile load: one start of a model, measured part by part, and which
// part is slow.
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/bench/measure.h"
#include "hearth/cli/infer/first_words.h"
#include "hearth/cli/measure/start_profile.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/hardware/process_peak.h"
#include "hearth/io/file_source.h"
#include "hearth/models/quant_target.h"

namespace hearth::cli {
namespace {

struct ProfileFlags {
  ModelFlags model;
  std::string html, read = "auto";
  bool unpacked = false, cold = false;
};

void declare(Args& args, ProfileFlags& f) {
  f.model.declare(args);
  args.choice(
      "--read", f.read, {"auto", "mapped", "read", "direct"},
      "How the model's own files come in, packed weights left out; auto: as "
      "the disk and the free memory suggest"
  );
  args.flag("--unpacked", f.unpacked, "Leave out what hearth preload has kept");
  args.flag("--cold", f.cold, "Take the files out of the page cache first");
  args.option(
      "--html", f.html, "Write the timeline as a page to this file, - is stdout"
  );
  args.example(
      "hearth profile load model/", "a table: phases, shards, tensor classes"
  );
  args.example(
      "hearth profile load model/ --quant 4 --cold --html load.html",
      "from disk to 4 bits, with a timeline to look at"
  );
  args.example(
      "hearth profile load model/ --json --unpacked",
      "as JSON, as if it had not been preloaded"
  );
}

// The file that the tokenizer was read from.
std::string tokenizer_file(const infer::TextModel& model) {
  namespace fs = std::filesystem;
  if (!model.tokenizer) return {};
  if (!fs::is_directory(model.text_path)) return model.text_path;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    const fs::path file = fs::path(model.text_path) / name;
    if (fs::exists(file)) return file.string();
  }
  return {};
}

StartProfile measure(const Context& context, const ProfileFlags& flags) {
  StartProfile p;
  p.model = flags.model.model;
  p.quant =
      models::quant_target_name(models::parse_quant_rules(flags.model.quant));
  ModelFlags wanted = flags.model;
  // Packed weights are mapped, so that a way to read is about the model's own.
  wanted.packed = !flags.unpacked && flags.read == "auto";
  if (flags.read != "auto") {
    wanted.read_mode = flags.read == "mapped"   ? io::ReadMode::mapped
                       : flags.read == "direct" ? io::ReadMode::direct
                                                : io::ReadMode::buffered;
  }
  if (flags.cold) wanted.drop_page_cache(context);
  hardware::reset_process_peak();
  reset_memory_peak();
  profile::ProcessSampler sampler;
  double load_ms = 0;
  const auto model = wanted.load(context, &load_ms);
  const MemoryUsage loaded = memory_usage();
  p.held = loaded.total, p.peak_held = loaded.peak;
  const profile::ProcessSample now = profile::sample_process();
  p.resident = now.resident, p.anonymous = now.anonymous;
  p.facts.first_token = first_words(model, 1).first_token;
  p.memory = sampler.stop();
  const auto& timing = model.timing;
  models::StartFacts& f = p.facts;
  f.load = model.model.report;
  f.header =
      std::min(io::header_seconds(*model.model.source), timing.open_ms / 1e3);
  f.open = timing.open_ms / 1e3 - f.header;
  f.tokenizer = timing.text_ms / 1e3;
  // The rest of what it took: describing the model, looking tensors up.
  f.build = std::max(
      0.0, load_ms / 1e3 - f.open - f.header - f.tokenizer - f.load.seconds
  );
  f.major_faults = p.memory.back().major_faults - p.memory.front().major_faults;
  f.memory_stall = p.memory.back().memory_stall - p.memory.front().memory_stall;
  models::ReadFacts machine;
  wanted.options().machine(machine);
  f.disk_bytes_per_second = machine.disk_bytes_per_second;
  f.tokenizer_file = tokenizer_file(model);
  p.model_bytes = model.model.decoder->parameters().bytes();
  p.mapped = f.load.how == "packed cache";
  p.resident_before = p.memory.front().resident;
  p.peak_resident = hardware::process_peak();
  p.slow = models::diagnose(f);
  return p;
}

}  // namespace

void cmd_profile_load(Context& context, const std::vector<std::string>& words) {
  ProfileFlags flags;
  Args args(
      "profile load",
      "Loads a model as generate, chat and serve do, up to the first token, "
      "and says where time and memory went: by phase, shard and class of "
      "tensors, "
      "and which part is slow and why.",
      context.common
  );
  declare(args, flags);
  if (!context.parse(args, words)) return;
  if (flags.html == "-" && context.common.json) {
    throw UsageError("--html - and --json both write to stdout: give a file");
  }
  if (!flags.html.empty()) require_output_folder(flags.html);
  const StartProfile p = measure(context, flags);
  if (flags.html == "-") return context.print(to_html(p));
  if (!flags.html.empty()) write_file_atomically(flags.html, to_html(p));
  if (context.common.json) {
    return context.json("hearth.profile.load/1", to_json(p));
  }
  context.print(to_text(p));
}

}  // namespace hearth::cli
