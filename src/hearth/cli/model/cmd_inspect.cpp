// hearth inspect MODEL
#include "hearth/cli/command.h"
#include "hearth/cli/model/model_report.h"
#include "hearth/io/model_source.h"
#include "hearth/train/loop/run_model.h"

namespace hearth::cli {

void cmd_inspect(Context& context, const std::vector<std::string>& words) {
  std::string path;
  bool tensors = false, check = false;
  Args args(
      "inspect",
      "What a model is: architecture, sizes, dtypes, tokenizer, chat template, "
      "bytes, and whatever is odd.",
      context.common
  );
  args.positional(
      "MODEL", path,
      "A model folder, a .gguf file, hf:ORG/NAME[@REV] or a run directory"
  );
  args.flag("--tensors", tensors, "List every tensor");
  args.flag("--check", check, "Read all weights and look for NaN and infinity");
  args.example("hearth inspect SmolLM2-135M/", "a Hugging Face folder");
  args.example(
      "hearth inspect model.gguf --tensors", "every tensor of a GGUF file"
  );
  args.example(
      "hearth inspect model/ --check --json", "weights checked, for a program"
  );
  if (!context.parse(args, words)) return;

  const auto run = train::parse_run_reference(path);
  const auto model = run ? train::open_run_source(*run) : io::open_model(path);
  const ModelReport report = inspect_model(model, check);
  if (context.common.json) {
    return context.json("hearth.inspect/1", report_json(report, tensors));
  }
  context.print(report_text(report, tensors));
}

}  // namespace hearth::cli
