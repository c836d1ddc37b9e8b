// hearth eval ppl: perplexity of a model on a text.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/progress.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/infer/perplexity.h"

namespace hearth::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string text, method = "sliding", products = "int8";
  std::int64_t ctx = 0, windows = 0, stride = 0, batch = 0;
};

void declare(Args& args, EvalFlags& f) {
  f.model.declare(args);
  args.option("--text", f.text, "The text file; - reads stdin");
  args.require("--text");
  args.option(
      "--ctx", f.ctx,
      "Tokens of a window; 0: 512, or the model's context where that is less"
  );
  args.option("--windows", f.windows, "Only the first so many windows; 0: all");
  args.choice(
      "--method", f.method, {"sliding", "llamacpp"},
      "sliding: windows overlap, each token is scored once; llamacpp: the "
      "second half of disjoint windows, as llama-perplexity does"
  );
  args.option(
      "--stride", f.stride,
      "sliding: tokens a window moves by; 0: half a window"
  );
  args.choice(
      "--products", f.products, {"int8", "exact"},
      "Quantised weights are multiplied by int8 activations, or as they are"
  );
  args.option(
      "--batch", f.batch, "Windows at once; 0: as many as make 2048 tokens"
  );
  args.example(
      "hearth eval ppl model/ --text valid.txt",
      "every token scored once, with at least 256 tokens before it"
  );
  args.example(
      "hearth eval ppl model.gguf --text wiki.txt --ctx 512 --windows 40 "
      "--method llamacpp",
      "a figure to set beside llama.cpp's"
  );
}

int size_of(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least || value > INT32_MAX) {
    throw UsageError(
        fmt::format("{} must be {} or more, got {}", name, least, value)
    );
  }
  return static_cast<int>(value);
}

infer::PerplexityOptions options_of(const EvalFlags& f) {
  const bool sliding = f.method == "sliding";
  if (!sliding && f.stride != 0) {
    throw UsageError("--stride is for --method sliding alone");
  }
  infer::PerplexityOptions o;
  o.method = sliding ? infer::PerplexityMethod::sliding
                     : infer::PerplexityMethod::llamacpp;
  o.exact = f.products == "exact";
  if (f.ctx != 0) o.window = size_of(f.ctx, 2, "--ctx");
  o.max_windows = size_of(f.windows, 0, "--windows");
  o.stride = size_of(f.stride, 0, "--stride");
  o.batch = size_of(f.batch, 0, "--batch");
  return o;
}

}  // namespace

void cmd_eval_ppl(Context& context, const std::vector<std::string>& words) {
  EvalFlags flags;
  Args args(
      "eval ppl", "Perplexity of a model on a text, with its standard error.",
      context.common
  );
  declare(args, flags);
  if (!context.parse(args, words)) return;

  auto options = options_of(flags);
  require_input_file(flags.text, "text");
  const std::string text = read_text(flags.text);
  if (text.empty()) throw UsageError(flags.text + ": there is no text in it");
  double load_ms = 0;
  const auto model = flags.model.load(context, &load_ms);
  if (flags.ctx == 0) {
    options.window =
        std::min(options.window, model.model.decoder->config().max_length);
  }
  const auto ids = model.raw_prompt(text);
  const auto prefix = model.tokenizer->prefix_ids();
  std::optional<std::int32_t> bos;
  if (!prefix.empty()) bos = prefix[0];
  std::optional<Progress> progress;
  options.progress = [&](std::size_t done, std::size_t total, double nll) {
    if (!progress) {
      progress.emplace(Progress::Options{"eval ppl", "windows", total});
    }
    progress->update(done, fmt::format("perplexity {:.4f}", std::exp(nll)));
  };
  const auto got = infer::perplexity(model.model, ids, bos, options);
  progress.reset();
  if (context.common.json) {
    return context.json(
        "hearth.eval.ppl/1", {{"ppl", got.ppl},
                              {"stderr", got.error},
                              {"nll", got.nll},
                              {"tokens", got.tokens},
                              {"windows", got.windows},
                              {"method", flags.method},
                              {"ctx", options.window}}
    );
  }
  context.print(
      fmt::format(
          "perplexity {:.4f} ± {:.4f} ({:.5f} nats a token over {} tokens, {} "
          "windows of {})\n",
          got.ppl, got.error, got.nll, got.tokens, got.windows, options.window
      )
  );
}

}  // namespace hearth::cli
