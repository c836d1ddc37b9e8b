// GGUF files: structure, names, rows put back, metadata as a config.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/io/gguf_file.h"
#include "hearth/io/gguf_names.h"
#include "hearth/io/gguf_rope.h"
#include "hearth/io/gguf_source.h"
#include "hearth/io/model_bytes_test.h"

namespace hearth::io {
namespace {

using test::GgufMaker;
using test::refusal;

std::vector<float> count(std::size_t n, float from = 0) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = from + static_cast<float>(i);
  return out;
}

// Hidden 8, two heads of 4, one key-value head.
GgufMaker tiny(const std::string& architecture) {
  GgufMaker m;
  const std::string a = architecture + ".";
  m.text("general.architecture", architecture);
  m.u32(a + "context_length", 32);
  m.u32(a + "embedding_length", 8);
  m.u32(a + "block_count", 1);
  m.u32(a + "feed_forward_length", 12);
  m.u32(a + "attention.head_count", 2);
  if (architecture != "gpt2") m.u32(a + "attention.head_count_kv", 1);
  m.f32(a + "attention.layer_norm_rms_epsilon", 1e-5F);
  m.floats("token_embd.weight", {8, 5}, count(40));
  return m;
}

std::vector<float> floats(const ModelSource& model, const char* name) {
  const TensorInfo* info = model.find(name);
  EXPECT_NE(info, nullptr) << name;
  if (info == nullptr) return {};
  const TensorData data = model.data(*info);
  std::vector<float> out(data.bytes.size() / 4);
  std::memcpy(out.data(), data.bytes.data(), data.bytes.size());
  return out;
}

std::string refused(const GgufMaker& maker) {
  const std::string bytes = maker.bytes();
  return refusal([&] { open_gguf(test::as_bytes(bytes), "a.gguf"); });
}

TEST(Gguf, PutsBackTheRowsOfLlamaHeads) {
  GgufMaker m = tiny("llama");
  // One value a row: two heads of four rows, pair by pair.
  m.floats("blk.0.attn_q.weight", {1, 8}, {0, 2, 1, 3, 10, 12, 11, 13});
  m.floats("blk.0.attn_k.bias", {4}, {0, 2, 1, 3});
  m.floats("blk.0.attn_v.weight", {1, 4}, {0, 2, 1, 3});
  const std::string bytes = m.bytes();
  const auto model = open_gguf(test::as_bytes(bytes), "a.gguf");
  using Floats = std::vector<float>;
  EXPECT_EQ(
      floats(*model, "model.layers.0.self_attn.q_proj.weight"),
      (Floats{0, 1, 2, 3, 10, 11, 12, 13})
  );
  EXPECT_EQ(
      floats(*model, "model.layers.0.self_attn.k_proj.bias"),
      (Floats{0, 1, 2, 3})
  );
  EXPECT_EQ(
      floats(*model, "model.layers.0.self_attn.v_proj.weight"),
      (Floats{0, 2, 1, 3})
  );
  EXPECT_EQ(
      model->find("model.embed_tokens.weight")->shape,
      (std::vector<std::int64_t>{5, 8})
  );
  EXPECT_EQ(model->find("lm_head.weight"), nullptr);
}

TEST(Gguf, TakesOneFromGemmaNormsAndTurnsGpt2Weights) {
  GgufMaker gemma = tiny("gemma2");
  gemma.floats("blk.0.attn_norm.weight", {3}, {1, 1.5F, -1});
  gemma.floats("blk.0.ffn_norm.weight", {1}, {3});
  const std::string g = gemma.bytes();
  const auto one = open_gguf(test::as_bytes(g), "g.gguf");
  EXPECT_EQ(
      floats(*one, "model.layers.0.input_layernorm.weight"),
      (std::vector<float>{0, 0.5F, -2})
  );
  EXPECT_EQ(
      floats(*one, "model.layers.0.pre_feedforward_layernorm.weight"),
      std::vector<float>{2}
  );

  GgufMaker gpt2 = tiny("gpt2");
  gpt2.floats("blk.0.ffn_up.weight", {2, 3}, {0, 1, 2, 3, 4, 5});
  gpt2.tensor("blk.0.ffn_down.weight", {32, 2}, 8, gpt2.data.size());
  gpt2.data += std::string(68, '\1');
  const std::string p = gpt2.bytes();
  const auto two = open_gguf(test::as_bytes(p), "p.gguf");
  const TensorInfo* up = two->find("transformer.h.0.mlp.c_fc.weight");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(up->transposed);
  EXPECT_EQ(
      floats(*two, "transformer.h.0.mlp.c_fc.weight"),
      (std::vector<float>{0, 2, 4, 1, 3, 5})
  );
  const TensorInfo* down = two->find("transformer.h.0.mlp.c_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_TRUE(down->transposed);
  EXPECT_EQ(down->shape, (std::vector<std::int64_t>{2, 32}));
}

TEST(Gguf, SaysTheMetadataInHuggingFaceKeys) {
  GgufMaker m = tiny("llama");
  m.f32("llama.rope.freq_base", 1e6F);
  m.u32("tokenizer.ggml.eos_token_id", 2);
  m.u32("tokenizer.ggml.eot_token_id", 4);
  m.floats("output.weight", {8, 5}, count(40));
  const std::string bytes = m.bytes();
  const auto model = open_gguf(test::as_bytes(bytes), "a.gguf");
  const Json& c = model->config();
  EXPECT_EQ(c["architectures"], Json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(c["hidden_size"], 8);
  EXPECT_EQ(c["head_dim"], 4);
  EXPECT_EQ(c["num_key_value_heads"], 1);
  EXPECT_EQ(c["vocab_size"], 5);
  EXPECT_EQ(c["rms_norm_eps"], 1e-5);
  EXPECT_EQ(c["rope_theta"], 1e6);
  EXPECT_EQ(c["tie_word_embeddings"], false);
  EXPECT_EQ(model->generation_config()["eos_token_id"], Json::array({2, 4}));
}

TEST(Gguf, RefusesStructureThatCannotBe) {
  GgufMaker past = tiny("llama");
  past.tensor("output.weight", {8, 5}, 0, 1 << 20);
  GgufMaker unaligned = tiny("llama");
  unaligned.tensor("output.weight", {1}, 0, 4);
  GgufMaker over = tiny("llama");
  over.tensor("output.weight", {8}, 0, 32);
  GgufMaker block = tiny("llama");
  block.tensor("output.weight", {40}, 8, 0);
  GgufMaker huge = tiny("llama");
  huge.tensor("output.weight", {~0ULL >> 1, 8}, 0, 0);
  GgufMaker type = tiny("llama");
  type.tensor("output.weight", {256}, 10, 0);
  GgufMaker twice = tiny("llama");
  twice.tensor("token_embd.weight", {8}, 0, 0);
  GgufMaker counted = tiny("llama");
  counted.tensor_count = ~0ULL;
  GgufMaker flat = tiny("llama");
  flat.tensor("output.weight", {}, 0, 0);
  GgufMaker swapped = tiny("llama");
  swapped.version = 0x03000000;
  GgufMaker key = tiny("llama");
  key.u32("llama.block_count", 1);
  const std::pair<const GgufMaker*, const char*> cases[] = {
      {&past, "cut short"},
      {&unaligned, "must be aligned to 32"},
      {&over, "\"output.weight\" overlaps \"token_embd.weight\""},
      {&block, "is not a possible shape"},
      {&huge, "is not a possible shape"},
      {&type, "type Q2_K is not supported"},
      {&twice, "is given twice"},
      {&counted, "more than the file can hold"},
      {&flat, "1 to 4 dimensions"},
      {&swapped, "big-endian"},
      {&key, "\"llama.block_count\" is given twice"},
  };
  for (const auto& [maker, phrase] : cases) {
    const std::string message = refused(*maker);
    EXPECT_NE(message.find(phrase), message.npos) << phrase << ": " << message;
    EXPECT_NE(message.find("a.gguf at byte"), message.npos) << message;
  }
  // However short the file is cut, it is refused and not read past.
  const std::string whole = tiny("llama").bytes();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string part = whole.substr(0, n);
    EXPECT_FALSE(refusal([&] { open_gguf(test::as_bytes(part), "a"); }).empty())
        << n;
  }
}

TEST(Gguf, RefusesWhatItDoesNotUnderstandByName) {
  GgufMaker unknown = tiny("llama");
  unknown.f32("llama.logit_scale", 0.5F);
  GgufMaker experts = tiny("llama");
  experts.u32("llama.expert_count", 8);
  GgufMaker name = tiny("qwen2");
  name.floats("blk.0.ffn_gate_inp.weight", {1}, {0});
  GgufMaker heads = tiny("llama");
  heads.floats("blk.0.attn_q.weight", {1, 6}, count(6));
  GgufMaker norm = tiny("gemma3");
  norm.tensor("output_norm.weight", {8}, 1, 0);
  GgufMaker split = tiny("llama");
  split.u32("split.count", 3);
  GgufMaker dim = tiny("llama");
  dim.u32("llama.rope.dimension_count", 2);
  const std::pair<GgufMaker, const char*> cases[] = {
      {tiny("mamba"), "architecture \"mamba\" is not known; llama, qwen2"},
      {unknown, "\"llama.logit_scale\""},
      {experts, "\"llama.expert_count\""},
      {name, "\"blk.0.ffn_gate_inp.weight\" is not known in a qwen2 model"},
      {heads, "must have rows for 2 heads"},
      {norm, "overlaps"},
      {split, "split model"},
      {dim, "llama.rope.dimension_count must be the head's size 4"},
  };
  for (const auto& [maker, phrase] : cases) {
    const std::string message = refused(maker);
    EXPECT_NE(message.find(phrase), message.npos) << phrase << ": " << message;
  }
  GgufMaker none = tiny("llama");
  none.u32("llama.expert_count", 0);
  EXPECT_EQ(refused(none), "");
}

// The converter's rule, written out with its published constants.
std::vector<float> factors(std::size_t n, double theta, double context) {
  std::vector<float> out;
  for (std::size_t i = 0; i < n; ++i) {
    const double wave =
        2 * M_PI * std::pow(theta, static_cast<double>(i) / double(n));
    if (wave < context / 4) {
      out.push_back(1);
    } else if (wave > context) {
      out.push_back(8);
    } else {
      const double s = (context / wave - 1) / 3;
      out.push_back(static_cast<float>(1 / ((1 - s) / 8 + s)));
    }
  }
  return out;
}

TEST(Gguf, FindsTheFourNumbersOfLlama3Rope) {
  for (const std::size_t n : {32, 64}) {
    const auto rope = llama3_rope(factors(n, 500000, 8192), 500000);
    ASSERT_TRUE(rope);
    EXPECT_EQ(rope->factor, 8);
    EXPECT_EQ(rope->low_freq_factor, 1);
    EXPECT_EQ(rope->high_freq_factor, 4);
    EXPECT_EQ(rope->original_context, 8192);
  }
  // Few frequencies: one or none on the ramp, and other numbers do as well.
  for (const std::size_t n : {2, 4, 8}) {
    EXPECT_TRUE(llama3_rope(factors(n, 500000, 8192), 500000)) << n;
  }
  std::vector<float> odd = factors(32, 500000, 8192);
  odd[5] = 3;
  EXPECT_FALSE(llama3_rope(odd, 500000));
  EXPECT_FALSE(llama3_rope({}, 500000));
}

}  // namespace
}  // namespace hearth::io
