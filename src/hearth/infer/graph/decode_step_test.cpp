// A step as one traced function: nothing in it may be evaluated while it is
// traced, and what changes from step to step must come through its inputs.
#include "hearth/infer/graph/decode_step.h"

#include <gtest/gtest.h>

#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/infer/graph/device_sampler.h"
#include "hearth/infer/graph/ints.h"

namespace hearth::infer {
namespace {

constexpr int kPage = 16;

// Traces, but joins no ops.
class TracedOnly {
 public:
  TracedOnly() { mx::set_compile_mode(mx::CompileMode::no_fuse); }
  ~TracedOnly() { mx::set_compile_mode(mx::CompileMode::enabled); }
};

class Step : public testing::TestWithParam<std::string> {
 protected:
  const ops::ScopedFace gpu{ops::Face::gpu};
  const TracedOnly mode;
};

// Tokens of three rows by the likeliest, and of logits, over some steps, the
// arrays of which grow on the way.
std::vector<float> steps(const models::LoadedModel& model, bool compile) {
  DevicePages pages(model.decoder->config(), mx::float32, kPage, 1 << 20);
  DecodeStep step(model, pages, compile);
  const int rows = 3, most = step.pages_for(1);
  std::vector<int> table(static_cast<std::size_t>(rows * most));
  for (int i = 0; i < rows * most; ++i) {
    table[static_cast<std::size_t>(i)] = DevicePages::place(i % 12);
  }
  StepRows at{
      ints({3, 5, 7}, {rows}),
      ints({0, 0, 0}, {rows}),
      ints(table, {rows, most}),
      {}
  };
  std::vector<float> out;
  const auto keep = [&](mx::array x) {
    x = mx::astype(x, mx::float32);
    x.eval();
    out.insert(out.end(), x.data<float>(), x.data<float>() + x.size());
  };
  for (int t = 0; t < 5; ++t) {
    auto form = StepForm::likely;
    at.drawn.clear();
    if (t > 2) {
      form = t == 3 ? StepForm::drawn : StepForm::ranked;
      const Draw d{.temperature = 1, .top_k = 9, .uniform = 0.1f * float(t)};
      at.drawn.push_back(draw_rows({{d, d, d}}, rows));
    }
    const auto chosen = step.choose(at, form, nullptr);
    keep(chosen.tokens);
    at.ids = chosen.ids, at.lengths = chosen.lengths;
    if (t == 1) pages.reach(pages.layers()[0].shape(0) + 3);
  }
  for (const auto& x : step.logits(at, nullptr)) keep(x);
  return out;
}

TEST_P(Step, IsTheSameTraced) {
  const auto model = load_golden(GetParam(), mx::float32);
  model.decoder->join_products();
  const auto want = steps(model, false);
  EXPECT_EQ(steps(model, true), want);
  EXPECT_GT(want.size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(
    Golden,
    Step,
    testing::Values("llama3-gqa", "gpt2", "gemma3", "qwen3", "smollm2-shape"),
    [](const auto& item) { return test_name(item.param); }
);

}  // namespace
}  // namespace hearth::infer
