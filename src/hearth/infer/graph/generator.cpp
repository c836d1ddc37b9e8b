#include "hearth/infer/graph/generator.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/text_out.h"

namespace hearth::infer {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

void check(
    const models::LoadedModel& model,
    const text::Tokenizer* tokenizer,
    std::size_t prompt,
    const GenerateOptions& options
) {
  options.sampling.check();
  if (options.max_tokens < 1) {
    throw UsageError(
        fmt::format(
            "[infer.generate] max_tokens must be at least 1, got {}",
            options.max_tokens
        )
    );
  }
  text::check_stops(options.stop, "infer.generate");
  if (tokenizer == nullptr && !options.stop.empty()) {
    throw UsageError("[infer.generate] stop strings need a tokenizer");
  }
  const auto context =
      static_cast<std::size_t>(model.decoder->config().max_length);
  if (prompt >= context) {
    throw UsageError(
        fmt::format(
            "[infer.generate] the prompt must leave room for an answer in the "
            "model's context of {} tokens, got {} tokens",
            context, prompt
        )
    );
  }
}

class Run {
 public:
  Run(const models::LoadedModel& model,
      std::span<const std::int32_t> prompt,
      const GenerateOptions& options)
      : options_(options),
        sequence_(model, options.kv, options.products),
        sampler_(options.sampling),
        seen_(prompt.begin(), prompt.end()) {}

  // The token after what was fed so far.
  GeneratedToken step(std::span<const std::int32_t> ids) {
    const auto logits = sequence_.feed(ids, options_.prefill_chunk);
    GeneratedToken token;
    token.id = sampler_.pick(logits, seen_, seen_.size());
    if (options_.log_probs) {
      const auto at = static_cast<std::size_t>(token.id);
      token.log_prob = static_cast<float>(logits[at] - log_sum_exp(logits));
      token.top = top_log_probs(logits, *options_.log_probs);
    }
    seen_.push_back(token.id);
    return token;
  }
  // The prompt and what was made fill the context together.
  bool full() const {
    return seen_.size() >= static_cast<std::size_t>(sequence_.context());
  }
  std::size_t kv_bytes() const { return sequence_.kv_bytes(); }

 private:
  const GenerateOptions& options_;
  Sequence sequence_;
  Sampler sampler_;
  std::vector<std::int32_t> seen_;
};

}  // namespace

std::vector<std::int32_t> Generation::ids() const {
  std::vector<std::int32_t> out;
  for (const auto& t : tokens) out.push_back(t.id);
  return out;
}

Generation generate(
    const models::LoadedModel& model,
    const std::shared_ptr<const text::Tokenizer>& tokenizer,
    std::span<const std::int32_t> prompt,
    const GenerateOptions& options,
    const OnToken& on_token
) {
  check(model, tokenizer.get(), prompt.size(), options);
  Generation out;
  out.prompt_tokens = static_cast<int>(prompt.size());
  TextOut text(
      tokenizer, text_start(tokenizer.get(), prompt, options.continues_prompt),
      options.stop
  );
  Run run(model, prompt, options);
  const auto start = Clock::now();
  auto first_done = start;
  std::int32_t last = 0;
  for (bool going = true; going;) {
    const bool first = out.tokens.empty();
    GeneratedToken token =
        run.step(first ? prompt : std::span<const std::int32_t>(&last, 1));
    last = token.id;
    if (first) {
      out.first_step_ms = ms_since(start);
      first_done = Clock::now();
    }
    const bool stop_id =
        std::ranges::find(options.stop_ids, last) != options.stop_ids.end();
    if (!stop_id) token.text = text.push(last);
    const auto made = static_cast<int>(out.tokens.size()) + 1;
    if (stop_id || text.stopped()) {
      out.finish = Finish::stop, going = false;
    } else if (made >= options.max_tokens || run.full()) {
      out.finish = Finish::length, going = false;
    }
    if (!going) token.text += text.finish();
    out.text += token.text;
    out.tokens.push_back(token);
    if (on_token && !on_token(token) && going) {
      out.finish = Finish::cancelled, going = false;
    }
  }
  out.decode_ms = ms_since(first_done);
  const auto later = static_cast<double>(out.tokens.size()) - 1;
  if (later > 0) out.tokens_per_s = later / out.decode_ms * 1e3;
  out.kv_bytes = run.kv_bytes();
  return out;
}

}  // namespace hearth::infer
