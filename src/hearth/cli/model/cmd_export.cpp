// hearth export hf|peft: files that other tools load.
#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/export/hf_export.h"
#include "hearth/models/adapters.h"

namespace hearth::cli {
namespace {

struct ExportFlags {
  ModelFlags model;
  std::string out, dtype = "auto", shard_size = "5GB";
  bool force = false, own_format = false;

  void declare(Args& args) {
    model.declare_source(args);
    args.option("-o,--output", out, "The folder to write");
    args.require("--output");
    args.flag("--force", force, "Replace a model that is there");
  }
};

std::optional<io::TensorType> type_named(const std::string& word) {
  if (word == "fp32") return io::TensorType::f32;
  if (word == "bf16") return io::TensorType::bf16;
  if (word == "fp16") return io::TensorType::f16;
  return {};
}

std::uint64_t shard_bytes(const std::string& text) {
  const std::size_t bytes = parse_bytes(text, "--shard-size");
  if (bytes == 0) throw UsageError("--shard-size must be more than 0");
  return bytes;
}

exporting::HfExport write_folder(
    const ExportFlags& flags,
    const infer::TextModel& model
) {
  exporting::HfExportOptions o;
  o.type = type_named(flags.dtype);
  o.shard_bytes = shard_bytes(flags.shard_size);
  o.force = flags.force;
  o.own_format = flags.own_format;
  if (model.tokenizer) o.text_path = model.text_path;
  const double start = milliseconds_now();
  std::optional<Progress> progress;
  o.progress = [&](std::uint64_t done, std::uint64_t total) {
    if (!progress && milliseconds_now() - start < 2000) return;
    if (!progress) progress.emplace(Progress::Options{"writing", "B", total});
    progress->update(done);
  };
  return exporting::export_hf(model.model, flags.out, o);
}

}  // namespace

void cmd_export_hf(Context& context, const std::vector<std::string>& words) {
  ExportFlags flags;
  Args args(
      "export hf",
      "A model as a Hugging Face folder: dense weights, adapters merged, "
      "config, tokenizer and chat template.",
      context.common
  );
  flags.declare(args);
  args.choice(
      "--dtype", flags.dtype, {"auto", "bf16", "fp32", "fp16"},
      "Of the weights; auto: the source's, bf16 where that is quantised"
  );
  args.option(
      "--shard-size", flags.shard_size, "A weights file holds at most this much"
  );
  args.flag(
      "--own-format", flags.own_format,
      "Write a partial gate as model_type hearth, which only hearth reads"
  );
  args.example(
      "hearth export hf model.gguf -o model/",
      "a GGUF file with its tokenizer and template, widened to bf16"
  );
  args.example(
      "hearth export hf base/ --adapter run/adapter -o merged/",
      "a base with an adapter merged into it"
  );
  args.example(
      "hearth export hf run@last -o model/ --dtype fp32 --shard-size 2GB",
      "the last checkpoint of a run"
  );
  if (!context.parse(args, words)) return;

  const auto model = flags.model.describe(context);
  const auto made = write_folder(flags, model);
  const auto& unused = model.model.unused;
  if (!unused.empty()) {
    context.note(
        fmt::format(
            "{} tensors that the model does not use were left out, such as {}",
            unused.size(), unused.front()
        )
    );
  }
  if (!model.tokenizer) {
    context.note("the model has no tokenizer to carry along");
  }
  if (context.common.json) {
    return context.json(
        "hearth.export/1", {{"format", "hf"},
                            {"out", flags.out},
                            {"dtype", io::name_of(made.type)},
                            {"tensors", made.tensors},
                            {"bytes", made.bytes},
                            {"merged_adapters", made.merged},
                            {"tokenizer", made.tokenizer_files}}
    );
  }
  context.print(
      fmt::format(
          "{}: {} tensors, {} in {}{}\n", flags.out, made.tensors,
          format_bytes(made.bytes), io::name_of(made.type),
          made.merged > 0 ? fmt::format(", {} adapters merged", made.merged)
                          : std::string()
      )
  );
}

void cmd_export_peft(Context& context, const std::vector<std::string>& words) {
  ExportFlags flags;
  Args args(
      "export peft",
      "The adapters of a run, or of --adapter, as PEFT has them.",
      context.common
  );
  flags.declare(args);
  args.example(
      "hearth export peft run@400 -o adapter/", "the adapter at step 400"
  );
  if (!context.parse(args, words)) return;

  const auto model = flags.model.describe(context);
  models::save_adapter(
      *model.model.decoder, model.model.source->path(), flags.out, flags.force
  );
  if (context.common.json) {
    return context.json(
        "hearth.export/1", {{"format", "peft"}, {"out", flags.out}}
    );
  }
  context.print(fmt::format("{}: written\n", flags.out));
}

}  // namespace hearth::cli
