#include "hearth/io/weight_names.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_names.h"

namespace hearth::io {
namespace {

TEST(WeightNames, ARoleHasOneNameInAStyleAndTheNameItsRole) {
  for (const RoleName& row : role_names()) {
    for (const auto style :
         {NameStyle::llama, NameStyle::gemma, NameStyle::gpt2,
          NameStyle::plain_mlp}) {
      if (!row.of(style)) continue;
      const bool block = row.module.find("{}") != row.module.npos;
      const int layer = block ? 17 : -1;
      const std::string name = module_name(style, row.role, layer);
      const NamedRole back = role_of(name + ".bias");
      EXPECT_EQ(back.layer, layer) << name;
      EXPECT_TRUE(back.bias) << name;
      // A norm after attention and one before the MLP share a name.
      if (name.find("post_attention_layernorm") == name.npos) {
        EXPECT_EQ(back.role, row.role) << name;
      }
    }
  }
  EXPECT_THROW(module_name(NameStyle::llama, Role::joint, 0), Error);
}

TEST(WeightNames, WhatNoStyleHasIsOther) {
  EXPECT_EQ(role_of("model.layers.x.mlp.up_proj.weight").role, Role::other);
  EXPECT_EQ(role_of("model.layers.03.mlp.up_proj.weight").role, Role::other);
  EXPECT_EQ(role_of("model.layers..mlp.up_proj.weight").role, Role::other);
  EXPECT_EQ(role_of("model.layers.-1.mlp.up_proj.weight").role, Role::other);
  EXPECT_EQ(role_of("model.layers.3.mlp.up_proj.scales").role, Role::other);
  EXPECT_EQ(role_of("").role, Role::other);
  EXPECT_EQ(
      role_of("model.layers.3.mlp.up_proj.lora_A.weight").role, Role::adapter
  );
  EXPECT_EQ(role_of("model.layers.3.mlp.gate_beta").role, Role::gate_beta);
}

// What one table reads another program writes, so both directions agree.
TEST(GgufNames, GoBothWaysInEveryArchitecture) {
  int seen = 0;
  for (const GgufArchitecture& a : gguf_architectures()) {
    for (const RoleName& row : role_names()) {
      if (!row.of(a.style) || row.gguf.empty()) continue;
      const bool block = row.module.find("{}") != row.module.npos;
      const auto hf =
          module_name(a.style, row.role, block ? 12 : -1) + ".weight";
      const auto gguf = gguf_name(a.name, hf);
      ASSERT_TRUE(gguf) << a.name << " " << hf;
      const auto back = hugging_face_name(a.name, gguf->name);
      ASSERT_TRUE(back) << a.name << " " << gguf->name;
      EXPECT_EQ(back->name, hf);
      EXPECT_EQ(back->change, gguf->change);
      ++seen;
    }
  }
  EXPECT_GT(seen, 70);
  EXPECT_FALSE(gguf_name("llama", "model.layers.3.mlp.gate_alpha.weight"));
  EXPECT_FALSE(gguf_name("bert", "model.norm.weight"));
}

}  // namespace
}  // namespace hearth::io
