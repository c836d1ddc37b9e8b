#include "hearth/cli/infer/first_words.h"

#include <future>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/engine/make_runner.h"

namespace hearth::cli {

FirstWords first_words(const infer::TextModel& model, int tokens) {
  infer::Request request;
  request.prompt = {1, 2};
  if (model.tokenizer) request.prompt = model.raw_prompt("Once upon a time");
  request.max_tokens = tokens;
  // Keys and values of one sequence, with a page to spare: what is measured is
  // the start, not the room that a server would take.
  infer::RunnerOptions options;
  options.kv_budget_bytes = infer::kv_bytes(
      model.model.decoder->config(), infer::KvType::float32,
      request.prompt.size() + static_cast<std::size_t>(tokens) +
          2 * static_cast<std::size_t>(options.page_tokens)
  );
  const double start = milliseconds_now();
  infer::Engine engine(
      [&] { return infer::make_runner(model.model, options); }, model.tokenizer,
      {.max_batch = 1}
  );
  FirstWords out;
  std::promise<std::pair<std::string, std::string>> ended;
  engine.submit(std::move(request), [&](const infer::Event& event) {
    if (event.kind == infer::Event::Kind::end) {
      return ended.set_value({event.error, event.hint});
    }
    if (out.ids.empty()) out.first_token = (milliseconds_now() - start) / 1e3;
    out.ids.push_back(event.token.id);
  });
  const auto [error, hint] = ended.get_future().get();
  if (!error.empty()) throw Error(error, hint);
  return out;
}

}  // namespace hearth::cli
