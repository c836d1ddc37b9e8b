#include "hearth/infer/graph/decode_step.h"

#include <algorithm>
#include <bit>

#include "hearth/infer/graph/device_sampler.h"

namespace hearth::infer {

DecodeStep::DecodeStep(
    const models::LoadedModel& model,
    const DevicePages& pages,
    bool compile
)
    : model_(model), pages_(pages), compile_(compile) {}

int DecodeStep::rows_for(int rows) {
  constexpr int kFew = 8, kSome = 64;
  if (rows <= kFew) return static_cast<int>(std::bit_ceil(unsigned(rows)));
  const int step = rows <= kSome ? 16 : 32;
  return (rows + step - 1) / step * step;
}

int DecodeStep::pages_for(int tokens) const {
  constexpr int kFewTokens = 512;
  const auto room = std::bit_ceil(unsigned(std::max(tokens, kFewTokens)));
  const int page = pages_.page_tokens();
  return (static_cast<int>(room) + page - 1) / page;
}

Arrays DecodeStep::build(
    const Arrays& in,
    StepForm form,
    const nn::LoraSet* lora
) const {
  const auto &ids = in[0], &lengths = in[1], &pages = in[2];
  const int rows = ids.shape(0);
  const nn::PagedPass paged{&pages_.layers(), {pages, lengths}, {}};
  nn::Pass pass;
  pass.dtype = model_.compute;
  pass.positions = mx::reshape(lengths, {rows, 1});
  pass.length = pages.shape(1) * pages_.page_tokens();
  pass.paged = &paged;
  pass.lora = lora;
  const auto& decoder = *model_.decoder;
  const auto h = decoder.hidden(mx::reshape(ids, {rows, 1}), pass);
  const auto logits = mx::reshape(decoder.logits(h, pass), {rows, -1});
  if (form == StepForm::logits) {
    const auto states = mx::reshape(h, {rows, -1});
    return {logits, mx::astype(states, mx::float32)};
  }
  const auto tokens = form == StepForm::likely
                          ? mx::argmax(logits, -1)
                          : draw(logits, in[3], form == StepForm::ranked);
  return {
      tokens, mx::astype(tokens, mx::int32),
      mx::add(lengths, mx::array(1, mx::int32))
  };
}

Arrays DecodeStep::run(
    const StepRows& rows,
    StepForm form,
    const nn::LoraSet* lora
) {
  if (generation_ != pages_.generation()) {
    compiled_.clear();
    generation_ = pages_.generation();
  }
  auto at = compiled_.find({form, lora});
  if (at == compiled_.end()) {
    Function f = [this, form, lora](const Arrays& in) {
      return build(in, form, lora);
    };
    if (compile_) f = mx::compile(std::move(f));
    at = compiled_.emplace(std::pair{form, lora}, std::move(f)).first;
  }
  Arrays in{rows.ids, rows.lengths, rows.pages};
  in.insert(in.end(), rows.drawn.begin(), rows.drawn.end());
  return at->second(in);
}

Arrays DecodeStep::logits(const StepRows& rows, const nn::LoraSet* lora) {
  return run(rows, StepForm::logits, lora);
}

ChosenRows DecodeStep::choose(
    const StepRows& rows,
    StepForm form,
    const nn::LoraSet* lora
) {
  const auto out = run(rows, form, lora);
  return {out[0], out[1], out[2]};
}

}  // namespace hearth::infer
