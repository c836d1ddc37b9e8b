#include "hearth/cli/model_flags.h"

#include <chrono>

#include "hearth/models/adapters.h"
#include "hearth/ops/device.h"
#include "hearth/train/run_model.h"

namespace hearth::cli {

void ModelFlags::declare_source(Args& args, Adapter adapters) {
  args.positional(
      "MODEL", model,
      "A Hugging Face or MLX folder, a .gguf file, hf:ORG/NAME[@REV], or a run "
      "directory (RUN, RUN@last, RUN@STEP)"
  );
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
  args.choice(
      "--dtype", dtype, {"auto", "bf16", "fp32"},
      "Numbers it computes in; auto: fp32 for an fp32 checkpoint, else bf16"
  );
  args.flag("--dense", dense, "Widen quantised weights when they are read");
}

infer::TextModel ModelFlags::load_text(
    const models::LoadOptions& options
) const {
  if (const auto run = train::parse_run_reference(model)) {
    return infer::with_text(
        train::load_run_model(*run, options), model,
        tokenizer.empty() ? train::run_tokenizer(*run) : tokenizer
    );
  }
  return infer::load_text_model(model, tokenizer, options);
}

infer::TextModel ModelFlags::load(
    const Context& context,
    double* load_ms
) const {
  namespace mx = mlx::core;
  ops::use_device(context.common.device);
  const double start = milliseconds_now();
  models::LoadOptions options;
  options.keep_quantized = !dense;
  if (dtype != "auto") {
    options.compute = dtype == "bf16" ? mx::bfloat16 : mx::float32;
  }
  // Most loads are over before a bar could be read.
  std::optional<Progress> progress;
  options.progress = [&](std::size_t bytes) {
    if (!progress && milliseconds_now() - start < 2000) return;
    if (!progress) progress.emplace(Progress::Options{"loading", "B", 0});
    progress->update(bytes);
  };
  auto out = load_text(options);
  if (!adapter.empty()) models::load_adapter(out.model, adapter);
  *load_ms = milliseconds_now() - start;
  return out;
}

infer::TextModel ModelFlags::describe(const Context& context) const {
  ops::use_device(context.common.device);
  auto out = load_text({.use = models::Use::described});
  if (!adapter.empty()) models::load_adapter(out.model, adapter);
  return out;
}

double milliseconds_now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace hearth::cli
