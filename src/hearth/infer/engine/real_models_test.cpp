// Trained models against what transformers made of them
// (tests/golden/real_models.json). The weights are not part of the project:
// without them these tests skip.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "hearth/base/json.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/infer/text_model.h"

namespace hearth::infer {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = HEARTH_SOURCE_DIR;

const Json& golden() {
  static const Json all =
      read_json_file((kSource / "tests/golden/real_models.json").string());
  return all["models"];
}

// HEARTH_SMOLLM2, or any SmolLM2 file in .deps/models.
std::string smollm2() {
  if (const char* given = std::getenv("HEARTH_SMOLLM2")) return given;
  const fs::path folder = kSource / ".deps/models";
  if (!fs::is_directory(folder)) return {};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("SmolLM2-135M") && name.ends_with(".gguf")) {
      return entry.path().string();
    }
  }
  return {};
}

// What the engine makes of a prompt over the graph's runner.
struct Made {
  std::string text;
  std::vector<GeneratedToken> tokens;
  Finish finish = Finish::length;

  std::vector<std::int32_t> ids() const {
    std::vector<std::int32_t> out;
    for (const auto& t : tokens) out.push_back(t.id);
    return out;
  }
};

Made run(const TextModel& m, Request request, const RunnerOptions& options) {
  Engine engine([&] { return make_runner(m.model, options); }, m.tokenizer, {});
  request.stop_ids = m.stop_ids;
  Made out;
  std::promise<Event> end;
  engine.submit(request, [&](const Event& e) {
    if (e.kind == Event::Kind::token) {
      out.tokens.push_back(e.token);
      out.text += e.token.text;
    }
    if (e.kind == Event::Kind::end) end.set_value(e);
  });
  const Event last = end.get_future().get();
  EXPECT_EQ(last.error, "");
  out.finish = last.finish;
  return out;
}

Made greedy_run(const TextModel& m, const Json& want) {
  Request r;
  r.prompt = want["prompt_ids"].get<std::vector<std::int32_t>>();
  r.max_tokens = static_cast<int>(want["ids"].size());
  r.log_probs = 0;
  r.continues_prompt = true;
  return run(m, r, {.graph = true});
}

double mean_nll(const Made& made) {
  double sum = 0;
  for (const auto& t : made.tokens) sum -= t.log_prob;
  return sum / static_cast<double>(made.tokens.size());
}

// Mean over the tokens of all documents, each by itself.
double mean_nll(const models::LoadedModel& model, const Json& documents) {
  double sum = 0;
  std::size_t tokens = 0;
  for (const Json& document : documents) {
    const auto ids = document.get<std::vector<int>>();
    const auto n = static_cast<int>(ids.size()) - 1;
    nn::Pass pass;
    pass.dtype = model.compute;
    pass.positions = models::plain_positions(1, n);
    pass.length = n;
    auto p = mx::sum(model.decoder->log_probs(
        mx::array(ids.data(), {1, n}), mx::array(ids.data() + 1, {1, n}), pass
    ));
    sum -= p.item<float>();
    tokens += static_cast<std::size_t>(n);
  }
  return sum / static_cast<double>(tokens);
}

class RealModel : public testing::TestWithParam<std::string> {
 protected:
  const Json& want = golden()[GetParam()];
  std::string folder =
      (kSource / "../shared" / want["folder"].get<std::string>()).string();

  void SetUp() override {
    if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder;
  }
};

TEST_P(RealModel, GreedyTextIsTransformers) {
  const auto model = load_text_model(folder);
  const auto got = greedy_run(model, want["greedy"]);
  EXPECT_EQ(got.ids(), want["greedy"]["ids"].get<std::vector<int>>());
  EXPECT_NEAR(mean_nll(got), want["greedy"]["mean_nll"].get<double>(), 2e-4);
  if (model.tokenizer) {
    EXPECT_EQ(got.text, want["greedy"]["text"].get<std::string>());
  }
}

TEST_P(RealModel, LikelihoodOfTextIsTransformers) {
  const auto model = models::load_model(folder);
  EXPECT_NEAR(
      mean_nll(model, want["nll"]["documents"]),
      want["nll"]["mean_nll"].get<double>(), 2e-4
  );
}

INSTANTIATE_TEST_SUITE_P(
    Weights,
    RealModel,
    testing::Values("stories260K-hf", "babyllama-hf", "capp-gpt2"),
    [](const auto& item) { return item.param.substr(0, item.param.find('-')); }
);

class SmolLM2 : public testing::Test {
 protected:
  std::string file = smollm2();
  const Json& want = golden()["smollm2-135m-q4_1"];

  void SetUp() override {
    if (file.empty() || !fs::exists(file)) {
      GTEST_SKIP() << "no SmolLM2-135M GGUF: set HEARTH_SMOLLM2, or run "
                      "./dev test --peers";
    }
  }
};

TEST_F(SmolLM2, WidenedToFloat32ItIsTransformers) {
  const auto m = load_text_model(
      file, {}, {.compute = mx::float32, .keep_quantized = false}
  );
  for (const char* part : {"chat", "greedy"}) {
    const auto got = greedy_run(m, want[part]);
    EXPECT_EQ(got.ids(), want[part]["ids"].get<std::vector<int>>()) << part;
    EXPECT_NEAR(mean_nll(got), want[part]["mean_nll"].get<double>(), 1e-3);
    EXPECT_EQ(got.text, want[part]["text"].get<std::string>()) << part;
  }
}

TEST_F(SmolLM2, QuantisedItKnowsParis) {
  const auto m = load_text_model(file);
  const Json messages = Json::array(
      {{{"role", "user"}, {"content", "What is the capital of France?"}}}
  );
  const auto prompt = m.chat_prompt(messages);
  EXPECT_EQ(prompt, want["chat"]["prompt_ids"].get<std::vector<int>>());
  for (const auto kv : {KvType::automatic, KvType::int8}) {
    Request r;
    r.prompt = prompt, r.max_tokens = 32;
    const auto got = run(m, r, {.kv = kv, .graph = true});
    EXPECT_EQ(got.text, "The capital of France is Paris.");
    EXPECT_EQ(got.finish, Finish::stop);
  }
}

// Root mean square of the difference, as a share of the values'.
double relative_error(const mx::array& a, const mx::array& b) {
  const auto wide = mx::astype(b, mx::float32);
  const auto d = mx::subtract(mx::astype(a, mx::float32), wide);
  return std::sqrt(
      mx::mean(mx::square(d)).item<float>() /
      mx::mean(mx::square(wide)).item<float>()
  );
}

TEST_F(SmolLM2, QuantisedProductsAreThoseOfTheWidenedWeights) {
  const auto m = models::load_model(file);
  std::vector<const nn::Weight*> matrices{&m.decoder->head()};
  for (const nn::Linear* l : m.decoder->linears()) {
    matrices.push_back(&l->weight());
  }
  nn::Pass pass;
  const auto key = mx::random::key(7);
  for (const nn::Weight* p : matrices) {
    ASSERT_TRUE(p->quantized()) << p->name;
    for (const int rows : {1, 7}) {
      const auto x = mx::astype(
          mx::random::normal({rows, p->shape[1]}, mx::float32, key),
          mx::bfloat16
      );
      const auto wide = mx::matmul(
          mx::astype(x, mx::float32),
          mx::transpose(p->quantized()->dequantize(mx::float32))
      );
      EXPECT_LE(relative_error(nn::multiply(x, *p, {}, pass), wide), 0.01)
          << p->name << ", rows " << rows;
    }
  }
}

TEST_F(SmolLM2, PromptsAreWhatTheTokenizerSays) {
  const auto m = load_text_model(file);
  EXPECT_EQ(
      m.raw_prompt(want["greedy"]["prompt"].get<std::string>()),
      want["greedy"]["prompt_ids"].get<std::vector<int>>()
  );
  EXPECT_EQ(m.stop_ids, std::vector<std::int32_t>{2});
}

}  // namespace
}  // namespace hearth::infer
