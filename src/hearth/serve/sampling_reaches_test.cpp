// Every way to sample that a request names reaches the sampler as it is named,
// held against the sampler itself over the same logits. And other small things
// that a request or an answer could get wrong unseen.
#include <gtest/gtest.h>

#include "hearth/serve/api_keys.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

// "abc" and what the sampler makes of it, as letters_tokenizer() spells it.
std::string by_sampler(
    const infer::SamplerOptions& options,
    const std::map<std::int32_t, float>& bias = {}
) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz.,!? ";
  infer::Sampler sampler(options, bias);
  std::vector<std::int32_t> ids{0, 1, 2};
  std::string text;
  for (int i = 0; i < 60; ++i) {
    auto logits = infer::FakeRunner::logits_after(ids, 32);
    const auto id = sampler.pick(logits, ids, ids.size(), 3);
    ids.push_back(id);
    if (id < 31) text += letters[static_cast<std::size_t>(id)];
  }
  return text;
}

TEST(SamplingReaches, EveryOptionByItsName) {
  ServiceBench bench;
  const struct {
    const char* json;
    infer::SamplerOptions options;
  } cases[] = {
      {R"("temperature":0)", {}},
      {R"("temperature":0,"presence_penalty":2)", {.presence_penalty = 2}},
      {R"("temperature":0,"frequency_penalty":1.5)",
       {.frequency_penalty = 1.5}},
      {R"("temperature":0,"repetition_penalty":3)", {.repeat_penalty = 3}},
      // What keeps the likeliest alone is as good as no temperature.
      {R"("temperature":2,"min_p":1)", {}},
      {R"("temperature":2,"top_k":1)", {}},
      {R"("temperature":2,"top_p":0.0001)", {}},
  };
  std::set<std::string> texts;
  for (const auto& c : cases) {
    const Json answer = json_of(bench.post(
        kTextPath,
        std::string(R"({"model":"base","prompt":"abc","max_tokens":60,)") +
            c.json + "}"
    ));
    const std::string text = answer["choices"][0]["text"];
    EXPECT_EQ(text, by_sampler(c.options)) << c.json;
    texts.insert(text);
  }
  EXPECT_GE(texts.size(), 4u) << "the penalties change nothing here";
}

// Two keys whose bytes differ by as much, in turn.
TEST(KeyBytes, DifferencesDoNotCancelOut) {
  EXPECT_FALSE(same_secret("abababab", "babababa"));
  EXPECT_FALSE(same_secret("xyxy", "yxxy"));
}

TEST(KeyBytes, AnotherSchemeOfTheSameLengthIsNone) {
  ApiKeys keys;
  keys.add("0123456789abcdef-key");
  EXPECT_TRUE(keys.accepts_header("Bearer 0123456789abcdef-key"));
  EXPECT_TRUE(keys.accepts_header("bearer 0123456789abcdef-key"));
  EXPECT_FALSE(keys.accepts_header("Digest 0123456789abcdef-key"));
  EXPECT_FALSE(keys.accepts_header("Bearer_0123456789abcdef-key"));
}

TEST(StopLimit, MoreTextsThanTheLimitAreRefused) {
  ServiceBench bench;
  const auto status = [&](int texts) {
    Json stops = Json::array();
    for (int i = 0; i < texts; ++i)
      stops.push_back("never" + std::to_string(i));
    return status_of(bench.post(
        kTextPath, R"({"model":"base","prompt":"abc","max_tokens":2,"stop":)" +
                       to_json_line(stops) + "}"
    ));
  };
  EXPECT_EQ(status(RequestLimits{}.max_stops), 200);
  EXPECT_EQ(status(RequestLimits{}.max_stops + 1), 400);
}

TEST(StopLimit, LongerTextsThanTheLimitAreRefused) {
  ServiceBench bench;
  const auto answer = [&](std::size_t bytes) {
    const Json stops = {"never", std::string(bytes, 'x')};
    return bench.post(
        kTextPath, R"({"model":"base","prompt":"abc","max_tokens":2,"stop":)" +
                       to_json_line(stops) + "}"
    );
  };
  EXPECT_EQ(status_of(answer(1024)), 200);
  const auto refused = answer(1025);
  EXPECT_EQ(status_of(refused), 400);
  const Json error = json_of(refused)["error"];
  EXPECT_EQ(error["param"], "stop");
  EXPECT_NE(
      error["message"].get<std::string>().find("at most 1024 bytes"),
      std::string::npos
  ) << error;
}

}  // namespace
}  // namespace hearth::serve
