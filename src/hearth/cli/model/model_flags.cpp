#include "hearth/cli/model/model_flags.h"

#include <set>

#include <fcntl.h>

#include "hearth/base/clock.h"
#include "hearth/base/env.h"
#include "hearth/base/file_handle.h"
#include "hearth/bench/measure.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/load_progress.h"
#include "hearth/models/adapters.h"
#include "hearth/models/packed_cache.h"
#include "hearth/models/quant_target.h"
#include "hearth/ops/device.h"
#include "hearth/train/loop/run_model.h"

namespace hearth::cli {

namespace {

constexpr const char* kModelHelp =
    "A Hugging Face or MLX folder, a .gguf file, hf:ORG/NAME[@REV], or a run "
    "directory (RUN, RUN@last, RUN@STEP)";

}  // namespace

void ModelFlags::declare_source(Args& args, Adapter adapters) {
  args.positional("MODEL", model, kModelHelp);
  declare_beside(args, adapters);
}

void ModelFlags::declare_optional(Args& args) {
  args.optional_positional("MODEL", model, kModelHelp);
  declare_beside(args, Adapter::one);
  declare_numbers(args);
}

void ModelFlags::declare_beside(Args& args, Adapter adapters) {
  if (adapters == Adapter::one) {
    args.option("--adapter", adapter, "PEFT adapter folder to put on it");
  }
  args.option(
      "-t,--tokenizer", tokenizer,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one, instead "
      "of the model's own"
  );
}

void ModelFlags::declare(Args& args, Adapter adapters) {
  declare_source(args, adapters);
  declare_numbers(args);
}

void ModelFlags::declare_numbers(Args& args) {
  args.choice(
      "--dtype", dtype, {"auto", "bf16", "fp32"},
      "Numbers it computes in; auto: fp32 for an fp32 checkpoint, else bf16"
  );
  args.option(
      "--quant", quant,
      "Round weights on the way in: 4 or 8 bits, or a format such as q4_0, "
      "q8_0, affine4-g64-bf16, for all or for patterns of names: 4,lm_head=8; "
      "those the file has quantised stay as they are"
  );
  args.flag("--dense", dense, "Widen quantised weights when they are read");
}

infer::TextModel ModelFlags::load_text(
    const models::LoadOptions& options,
    const infer::TextReady& ready
) const {
  if (!tokenizer.empty()) require_input(tokenizer, "tokenizer");
  if (!adapter.empty()) require_input(adapter, "adapter");
  if (const auto run = train::parse_run_reference(model)) {
    auto out = infer::text_side(
        *train::open_run_source(*run), model,
        tokenizer.empty() ? train::run_tokenizer(*run) : tokenizer, ready
    );
    out.model = train::load_run_model(*run, options);
    return out;
  }
  return infer::load_text_model(model, tokenizer, options, ready);
}

void ModelFlags::check_opens() const {
  if (const auto run = train::parse_run_reference(model)) {
    train::open_run_source(*run);
  } else {
    io::open_model(model);
  }
}

models::LoadOptions ModelFlags::options() const {
  namespace mx = mlx::core;
  models::LoadOptions options;
  options.keep_quantized = !dense;
  options.read_mode = read_mode;
  options.warn_unused = warns;
  if (packed) options.packed_cache = packed_folder();
  options.quantize = models::parse_quant_rules(quant);
  if (dtype != "auto") {
    options.compute = dtype == "bf16" ? mx::bfloat16 : mx::float32;
  }
  options.machine = [](models::ReadFacts& facts) {
    const auto machine = hardware::detect();
    facts.free_memory = hardware::safe_memory(machine).bytes;
    const auto peaks = hardware::load_peaks(bench::machine_id(machine));
    if (peaks) {
      facts.disk_bytes_per_second = 1e9 * peaks->disk_read_gb_s.value_or(0);
    }
  };
  return options;
}

infer::TextModel ModelFlags::load(
    const Context& context,
    double* load_ms,
    const infer::TextReady& ready
) const {
  ops::use_device(context.common.device);
  const double start = milliseconds_now();
  models::LoadOptions options = this->options();
  LoadProgress progress;
  options.progress = [&](const models::LoadStep& step) {
    InterruptGuard::check("interrupted while the model was loaded");
    progress.update(step);
  };
  options.note = [&](const std::string& text) { context.note(text); };
  auto out = load_text(options, ready);
  if (!adapter.empty()) models::load_adapter(out.model, adapter);
  *load_ms = milliseconds_now() - start;
  return out;
}

void ModelFlags::drop_page_cache(const Context& context) const {
  std::set<std::string> files;
  {
    const auto described = describe(context);
    for (const auto& t : described.model.source->tensors()) {
      files.insert(t.file);
    }
  }
  const models::PackedCache cache(packed_folder());
  for (const auto& kept : cache.list()) {
    if (!kept.unfinished) files.insert(kept.path);
  }
  for (const std::string& name : files) {
    const auto file = FileHandle::open(name, O_RDONLY, "read");
    file.sync();
#ifdef POSIX_FADV_DONTNEED
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
#endif
  }
}

infer::TextModel ModelFlags::describe(const Context& context) const {
  ops::use_device(context.common.device);
  auto out = load_text({.use = models::Use::described});
  if (!adapter.empty()) models::load_adapter(out.model, adapter);
  return out;
}

std::string packed_folder() {
  return env::cache_folder() + "/packed";
}

}  // namespace hearth::cli
