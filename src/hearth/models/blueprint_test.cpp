#include "hearth/models/blueprint.h"

#include <gtest/gtest.h>

#include "hearth/models/decoder.h"

namespace hearth::models {
namespace {

using io::Role;

DecoderConfig small() {
  DecoderConfig c;
  c.family = "llama";
  c.vocab = 96, c.dim = 24, c.layers = 2, c.ffn = 40;
  c.heads = 4, c.kv_heads = 2, c.head_dim = 6;
  c.windows.assign(2, 0);
  c.rope = ops::RopeConfig{.dims = 6};
  return c;
}

std::vector<Role> block_of(const DecoderConfig& c) {
  std::vector<Role> roles;
  const Blueprint b(c);
  for (const auto& w : b.weights()) {
    if (w.part.layer == 1 && !w.part.bias) roles.push_back(w.part.role);
  }
  return roles;
}

TEST(Blueprint, TellsWhatEveryWeightIsFor) {
  const Blueprint b(small());
  const auto* key = b.find(Role::key, 1);
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->name, "model.layers.1.self_attn.k_proj.weight");
  EXPECT_EQ(key->module(), "model.layers.1.self_attn.k_proj");
  EXPECT_EQ(key->shape, (mx::Shape{12, 24}));
  EXPECT_TRUE(key->matrix);
  EXPECT_EQ(b.find(Role::key, 2), nullptr);
  EXPECT_EQ(b.find(Role::joint, 0), nullptr);
  EXPECT_EQ(b.projections(0).size(), 7u);
  EXPECT_EQ(b.projections().size(), 14u);
  EXPECT_EQ(b.find(Role::head)->shape, (mx::Shape{96, 24}));
  EXPECT_FALSE(b.find(Role::embedding)->matrix);
}

TEST(Blueprint, TraitsOfTheBlockAreRoles) {
  DecoderConfig c = small();
  const std::vector<Role> llama{Role::attention_norm,
                                Role::query,
                                Role::key,
                                Role::value,
                                Role::attention_out,
                                Role::mlp_norm,
                                Role::gate,
                                Role::up,
                                Role::down};
  EXPECT_EQ(block_of(c), llama);
  c.gated = false;
  EXPECT_EQ(
      Blueprint(c).find(Role::up, 0)->name, "model.layers.0.mlp.fc1.weight"
  );
  c.gated = true, c.tie = true, c.sandwich_norms = c.qk_norm = true;
  const Blueprint gemma(c);
  EXPECT_EQ(
      gemma.find(Role::mlp_norm, 0)->name,
      "model.layers.0.pre_feedforward_layernorm.weight"
  );
  EXPECT_EQ(gemma.find(Role::query_norm, 0)->shape, (mx::Shape{6}));
  EXPECT_NE(gemma.find(Role::after_mlp_norm, 1), nullptr);
  EXPECT_EQ(gemma.find(Role::head), nullptr);
  EXPECT_TRUE(gemma.find(Role::embedding)->matrix);
}

// A decoder holds just these weights, in this order: a checkpoint's.
TEST(Blueprint, IsWhatADecoderHolds) {
  DecoderConfig c = small();
  c.gpt2_layout = true, c.gated = false, c.rope.reset(), c.max_length = 16;
  c.qkv_bias = c.out_bias = c.mlp_bias = true, c.kv_heads = 4;
  c.norm.kind = nn::NormKind::layer;
  for (const DecoderConfig& config : {small(), c}) {
    const Blueprint b(config);
    const Decoder decoder(config);
    const auto held = decoder.parameters().all();
    ASSERT_EQ(held.size(), b.weights().size());
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(held[i]->name, b.weights()[i].name);
      EXPECT_EQ(held[i]->shape, b.weights()[i].shape);
      const auto back = io::role_of(held[i]->name);
      EXPECT_EQ(back.layer, held[i]->part.layer) << held[i]->name;
      EXPECT_EQ(back.bias, held[i]->part.bias) << held[i]->name;
    }
  }
}

}  // namespace
}  // namespace hearth::models
