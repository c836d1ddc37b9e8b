#include "hearth/models/weight_plan.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/models/load.h"
#include "hearth/models/packed_cache.h"
#include "hearth/models/quant_target.h"

namespace hearth::models {
namespace {

using io::Role;
using kernels::QuantFormat;

const std::string kModel = HEARTH_SOURCE_DIR "/tests/golden/models/llama2";

nn::WeightSpec matrix(Role role, const char* name = "w.weight", int cols = 64) {
  return {
      .name = name,
      .shape = {96, cols},
      .matrix = true,
      .part = {role, role == Role::head || role == Role::embedding ? -1 : 0}
  };
}

TEST(QuantRules, TheLastThatMatchesCounts) {
  const auto rules = parse_quant_rules("4,*.v_proj.*=q6_k,lm_head=none");
  EXPECT_EQ(rules.of("a.q_proj.weight"), QuantFormat::parse("q4_0"));
  EXPECT_EQ(rules.of("a.v_proj.weight"), QuantFormat::parse("q6_k"));
  EXPECT_EQ(rules.of("lm_head.weight"), std::nullopt);
  EXPECT_EQ(quant_target_name(rules), "q4_0,*.v_proj.*=q6_k,lm_head=none");
  EXPECT_FALSE(parse_quant_rules("none"));
  EXPECT_EQ(quant_target_name(parse_quant_rules("8")), "q8_0");
  for (const char* wrong : {"", "4,", "4,lm_head=", "4,lm_head=7bits"}) {
    EXPECT_THROW(parse_quant_rules(wrong), UsageError) << wrong;
  }
}

TEST(WeightPlan, SaysWhichFormsEachUseHolds) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU holds no packed companions";
  const auto projection = matrix(Role::query), head = matrix(Role::head);
  const nn::WeightSpec norm{.name = "n", .shape = {96}};
  const WeightPlan training(Use::training, mx::bfloat16);
  const WeightPlan base(Use::frozen_base, mx::bfloat16);
  const WeightPlan inference(Use::inference, mx::bfloat16);
  EXPECT_EQ(training.forms(projection).value, mx::float32);
  EXPECT_EQ(training.forms(projection).packed, mx::bfloat16);
  EXPECT_EQ(training.forms(projection).orders, ops::PackedOrders::both);
  EXPECT_FALSE(base.forms(projection).value);
  EXPECT_EQ(base.forms(projection).orders, ops::PackedOrders::both);
  EXPECT_FALSE(inference.forms(projection).value);
  EXPECT_EQ(inference.forms(projection).orders, ops::PackedOrders::forward);
  EXPECT_EQ(inference.forms(head).value, mx::bfloat16);
  EXPECT_EQ(inference.forms(norm).value, mx::float32);
  EXPECT_FALSE(inference.forms(norm).packed);
  nn::WeightSpec adapter = matrix(Role::adapter);
  adapter.trainable = true;
  EXPECT_EQ(base.forms(adapter).value, mx::float32) << "a master is trained";
}

// Copies of what is trained can be left out, but for the head's and those of a
// table that is the head; what is frozen has nothing else to be multiplied by.
TEST(WeightPlan, MayPackTheHeadAloneOfWhatIsTrained) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU holds no packed companions";
  const auto plan = [](Use use) {
    return WeightPlan(use, mx::bfloat16, true, {}, PackedCopies::head);
  };
  const WeightPlan training = plan(Use::training);
  EXPECT_FALSE(training.forms(matrix(Role::query)).packed);
  EXPECT_EQ(training.forms(matrix(Role::query)).value, mx::float32);
  EXPECT_EQ(training.forms(matrix(Role::head)).packed, mx::bfloat16);
  EXPECT_EQ(training.forms(matrix(Role::embedding)).packed, mx::bfloat16);
  EXPECT_EQ(
      plan(Use::frozen_base).forms(matrix(Role::query)).packed, mx::bfloat16
  );
}

// What is loaded for training is held as the plan says, whichever way it comes.
TEST(WeightPlan, ALoadForTrainingMayPackTheHeadAlone) {
  mx::set_default_device(mx::Device::cpu);
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU holds no packed companions";
  LoadOptions options{.use = Use::training, .copies = PackedCopies::head};
  const auto model = load_model(kModel, options);
  std::size_t packed = 0;
  for (const nn::Weight* p : model.decoder->parameters().all()) {
    EXPECT_EQ(p->value().shape(), p->shape) << p->name;
    if (!p->packed()) continue;
    ++packed;
    EXPECT_EQ(p, &model.decoder->head()) << p->name;
  }
  EXPECT_EQ(packed, 1u);
}

TEST(WeightPlan, RoundsByItsRulesAndKeepsWhatIsStored) {
  const auto q4 = QuantFormat::parse("q4_0"), q8 = QuantFormat::parse("q8_0");
  const WeightPlan plan(
      Use::inference, mx::bfloat16, true, parse_quant_rules("4,lm_head=8")
  );
  EXPECT_EQ(plan.forms(matrix(Role::query)).quantized, q4);
  const auto head = matrix(Role::head, "lm_head.weight");
  EXPECT_EQ(plan.forms(head).quantized, q8);
  EXPECT_EQ(plan.forms(head, q4).quantized, q4) << "stays as it is stored";
  const auto narrow = matrix(Role::query, "w.weight", 33);
  EXPECT_FALSE(plan.forms(narrow).quantized);
  EXPECT_TRUE(plan.asked(narrow));
  const WeightPlan widening(Use::inference, mx::bfloat16, false);
  EXPECT_FALSE(widening.forms(head, q4).quantized);
  const WeightPlan training(Use::training, mx::bfloat16, true, q4);
  EXPECT_FALSE(training.forms(head).quantized);
  EXPECT_FALSE(training.forms(head, q4).quantized);
  const WeightPlan base(Use::frozen_base, mx::bfloat16, true, q4);
  EXPECT_EQ(base.forms(head).value, mx::bfloat16)
      << "the fused loss reads rows";
}

// Loader, planner and cache ask the same plan.
TEST(WeightPlan, ALoadHoldsEachMatrixInItsOwnFormat) {
  LoadOptions options{.quantize = parse_quant_rules("8,mlp=q4_0")};
  const auto model = load_model(kModel, options);
  const auto planned = quantized_formats(
      *model.source, Blueprint(model.decoder->config()), options
  );
  int four = 0, eight = 0;
  for (const nn::Weight* w : model.decoder->parameters().all()) {
    const auto at = planned.find(w->name);
    ASSERT_EQ(at != planned.end(), w->quantized() != nullptr) << w->name;
    if (!w->quantized()) continue;
    EXPECT_EQ(at->second, *w->format()) << w->name;
    const bool mlp = w->name.find(".mlp.") != std::string::npos;
    EXPECT_EQ(w->format()->name(), mlp ? "q4_0" : "q8_0") << w->name;
    ++(mlp ? four : eight);
  }
  EXPECT_GT(four, 0);
  EXPECT_GT(eight, 0);
  const LoadOptions all{.quantize = parse_quant_rules("8")};
  EXPECT_NE(
      packed_variant(options, model.compute), packed_variant(all, model.compute)
  );
}

}  // namespace
}  // namespace hearth::models
