// /v1/embeddings over an engine whose model is arithmetic.
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/serve/api/embedding_answer.h"
#include "hearth/serve/api/embedding_request.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

const char* const kPath = "/v1/embeddings";

std::string body(const std::string& input, const std::string& more = {}) {
  return R"({"model":"base","input":)" + input + more + "}";
}

// The mean of the fake model's states, scaled to a length of 1.
std::vector<float> expected(
    const std::vector<std::int32_t>& ids,
    std::size_t dimensions = 8,
    int adapter = -1
) {
  infer::Pooler pooler(infer::Pooling::mean);
  std::vector<std::int32_t> so_far;
  for (const auto id : ids) {
    so_far.push_back(id);
    pooler.add(infer::FakeRunner::logits_after(so_far, 8, adapter), 8);
  }
  auto out = pooler.result();
  out.resize(dimensions);
  infer::scale_to_unit(out);
  return out;
}

std::vector<float> floats(const Json& list) {
  return list.get<std::vector<float>>();
}

TEST(Embeddings, TextsAndIdsInOrder) {
  ServiceBench bench;
  const Json answer = json_of(bench.post(kPath, body(R"(["abc","z"])")));
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "base");
  EXPECT_EQ(
      answer["usage"], Json::parse(R"({"prompt_tokens":4,"total_tokens":4})")
  );
  ASSERT_EQ(answer["data"].size(), 2U);
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][1]["object"], "embedding");
  EXPECT_EQ(floats(answer["data"][0]["embedding"]), expected({0, 1, 2}));
  EXPECT_EQ(floats(answer["data"][1]["embedding"]), expected({25}));
  for (const char* same : {"\"abc\"", "[\"abc\"]", "[0,1,2]", "[[0,1,2]]"}) {
    const Json one = json_of(bench.post(kPath, body(same)));
    EXPECT_EQ(one["data"].size(), 1U);
    EXPECT_EQ(floats(one["data"][0]["embedding"]), expected({0, 1, 2})) << same;
  }
}

TEST(Embeddings, FewerDimensionsAreScaledAnew) {
  ServiceBench bench;
  const Json answer =
      json_of(bench.post(kPath, body("\"abc\"", R"(,"dimensions":3)")));
  EXPECT_EQ(floats(answer["data"][0]["embedding"]), expected({0, 1, 2}, 3));
}

std::string decoded(const std::string& text) {
  const std::string letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(letters.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

TEST(Embeddings, Base64HoldsTheSameNumbers) {
  ServiceBench bench;
  const Json answer = json_of(
      bench.post(kPath, body("\"abc\"", R"(,"encoding_format":"base64")"))
  );
  const std::string bytes = decoded(answer["data"][0]["embedding"]);
  const auto want = expected({0, 1, 2});
  ASSERT_EQ(bytes.size(), want.size() * 4);
  for (std::size_t i = 0; i < want.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t b = 4; b-- > 0;) {
      bits = bits << 8 | static_cast<unsigned char>(bytes[4 * i + b]);
    }
    EXPECT_EQ(std::bit_cast<float>(bits), want[i]);
  }
  // Every number of letters that a group may have.
  EXPECT_EQ(vector_text(std::vector<float>{1}, true), "\"AACAPw==\"");
  EXPECT_EQ(vector_text(std::vector<float>{1, 2}, true), "\"AACAPwAAAEA=\"");
  EXPECT_EQ(vector_text(std::vector<float>{1, 0.1F}, false), "[1,0.1]");
}

TEST(Embeddings, AnAdapterHasItsOwn) {
  ServiceBench bench;
  const Json answer =
      json_of(bench.post(kPath, R"({"model":"tuned","input":"abc"})"));
  EXPECT_EQ(floats(answer["data"][0]["embedding"]), expected({0, 1, 2}, 8, 0));
}

// More than may wait at all: they are handed over a few at a time.
TEST(Embeddings, ALongListLeavesRoomForOthers) {
  BenchOptions options;
  options.engine.max_batch = 4;
  options.engine.max_queue = 20;
  options.service.per_key = 3;
  ServiceBench bench(options);
  std::string list;
  for (int i = 0; i < 300; ++i) {
    list += (i > 0 ? ",[" : "[") + std::to_string(i % 26) + "]";
  }
  const Json answer = json_of(bench.post(kPath, body("[" + list + "]")));
  ASSERT_EQ(answer["data"].size(), 300U);
  for (std::size_t i = 0; i < 300; ++i) {
    const auto id = static_cast<std::int32_t>(i % 26);
    EXPECT_EQ(floats(answer["data"][i]["embedding"]), expected({id})) << i;
  }
  const std::string text = bench.get("/metrics");
  EXPECT_NE(text.find("hearth_requests_done_total 1\n"), text.npos);
  EXPECT_NE(
      text.find("{route=\"/v1/embeddings\",status=\"200\"} 1\n"), text.npos
  );
}

TEST(Embeddings, WhatCannotBeIsNamed) {
  ServiceBench bench;  // a context of 256 tokens
  const std::string long_text(257, 'a');
  const std::pair<std::string, std::string> cases[] = {
      {R"({"model":"base"})", "input"},
      {body("5"), "input"},
      {body("[]"), "input"},
      {body("\"\""), "input"},
      {body(R"(["a",""])"), "input[1]"},
      {body("\"" + long_text + "\""), "input"},
      {body("[\"a\",\"" + long_text + "\"]"), "input[1]"},
      {body("[99]"), "input"},
      {body("\"a\"", R"(,"dimensions":9)"), "dimensions"},
      {body("\"a\"", R"(,"dimensions":0)"), "dimensions"},
      {body("\"a\"", R"(,"encoding_format":"hex")"), "encoding_format"},
      {body("\"a\"", R"(,"temprature":1)"), "temprature"},
  };
  for (const auto& [request, param] : cases) {
    const std::string answer = bench.post(kPath, request);
    EXPECT_EQ(status_of(answer), 400) << request;
    EXPECT_EQ(json_of(answer)["error"]["param"], param) << answer;
  }
  const Json error =
      json_of(bench.post(kPath, body("\"" + long_text + "\"")))["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  // As long as the context is not too long.
  EXPECT_EQ(
      status_of(bench.post(kPath, body("\"" + std::string(256, 'a') + "\""))),
      200
  );
  std::string many = "0";
  for (int i = 0; i < 2048; ++i) many += ",0";
  EXPECT_EQ(status_of(bench.post(kPath, body("[[0],[" + many + "]]"))), 400);
  EXPECT_EQ(status_of(bench.get(kPath)), 405);
}

TEST(Embeddings, AClientThatLeavesFreesTheEngine) {
  BenchOptions options;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  ServiceBench bench(options);
  std::string list = "\"abc\"";
  for (int i = 0; i < 500; ++i) list += ",\"abc\"";
  {
    TestClient client(bench.server->port());
    client.write(closing_request("POST", kPath, body("[" + list + "]")));
    while (bench.engine->stats().requests == 0) std::this_thread::yield();
  }
  bool idle = false;
  for (int i = 0; i < 500 && !idle; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto stats = bench.engine->stats();
    idle = stats.running + stats.waiting == 0;
  }
  EXPECT_TRUE(idle);
  EXPECT_LT(bench.engine->stats().requests, 400U);
}

}  // namespace
}  // namespace hearth::serve
