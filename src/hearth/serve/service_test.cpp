// The API over a loopback socket and an engine whose model is arithmetic.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

TEST(ServiceTest, ChatStreamsWhatItAnswersWhole) {
  ServiceBench bench;
  const Json whole = json_of(bench.post(kChatPath, chat_body()));
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["model"], "base");
  const Json& choice = whole["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(whole["usage"]["completion_tokens"], 8);
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 6);

  const auto events = events_of(bench.post(
      kChatPath,
      chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})")
  ));
  ASSERT_GT(events.size(), 4U);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text, finish;
  for (std::size_t i = 0; i + 2 < events.size(); ++i) {
    const Json e = Json::parse(events[i]);
    EXPECT_EQ(e["object"], "chat.completion.chunk");
    EXPECT_TRUE(e["usage"].is_null());
    text += e["choices"][0]["delta"].value("content", "");
    if (e["choices"][0]["finish_reason"].is_string()) {
      finish = e["choices"][0]["finish_reason"];
    }
  }
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(text, choice["message"]["content"].get<std::string>());
  EXPECT_EQ(finish, "length");
  const Json last = Json::parse(events[events.size() - 2]);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["total_tokens"], 14);
}

TEST(ServiceTest, CachedTokensOfThePromptAreCounted) {
  ServiceBench bench;
  const std::string body = R"({"model":"base","max_tokens":4,"prompt":")" +
                           std::string(120, 'a') + "\"}";
  const auto cached = [&] {
    return json_of(
               bench.post(kTextPath, body)
    )["usage"]["prompt_tokens_details"]["cached_tokens"]
        .get<int>();
  };
  EXPECT_EQ(cached(), 0);
  EXPECT_GT(cached(), 60);
}

TEST(ServiceTest, SeedsRepeatAndChoicesDiffer) {
  ServiceBench bench;
  const std::string body =
      R"({"model":"base","prompt":"abc","max_tokens":12,"n":2,"seed":5})";
  const Json a = json_of(bench.post(kTextPath, body));
  const Json b = json_of(bench.post(kTextPath, body));
  ASSERT_EQ(a["choices"].size(), 2U);
  EXPECT_EQ(a["choices"], b["choices"]);
  EXPECT_NE(a["choices"][0]["text"], a["choices"][1]["text"]);
  EXPECT_EQ(a["usage"]["completion_tokens"], 24);
  EXPECT_EQ(a["usage"]["prompt_tokens"], 3);
}

TEST(ServiceTest, AChoiceIsNotTheNextSeeds) {
  ServiceBench bench;
  const auto texts = [&](int seed, int n) {
    return json_of(bench.post(
        kTextPath, R"({"model":"base","prompt":"abc","max_tokens":12,"n":)" +
                       std::to_string(n) + ",\"seed\":" + std::to_string(seed) +
                       "}"
    ))["choices"];
  };
  const Json three = texts(5, 3);
  EXPECT_EQ(three[0]["text"], texts(5, 1)[0]["text"]);
  EXPECT_NE(three[1]["text"], texts(6, 1)[0]["text"]);
  EXPECT_NE(three[2]["text"], texts(7, 1)[0]["text"]);
}

TEST(ServiceTest, AServersSeedMakesRequestsWithoutOneRepeatable) {
  const auto texts = [&](std::optional<std::uint64_t> seed) {
    BenchOptions options;
    options.service.seed = seed;
    ServiceBench bench(options);
    std::vector<std::string> out;
    for (int i = 0; i < 3; ++i) {
      out.push_back(json_of(bench.post(
          kTextPath, R"({"model":"base","prompt":"abc","max_tokens":20})"
      ))["choices"][0]["text"]);
    }
    return out;
  };
  const auto first = texts(3);
  EXPECT_EQ(first, texts(3));
  EXPECT_NE(first, texts(4));
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(texts({}), texts({}));
}

TEST(ServiceTest, ManyPromptsAreAnsweredInOrder) {
  ServiceBench bench;
  const auto text = [&](const std::string& prompt) {
    return json_of(bench.post(
        kTextPath, R"({"model":"base","temperature":0,"prompt":)" + prompt + "}"
    ))["choices"];
  };
  const Json both = text(R"(["abc","xyz"])");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]["text"], text("\"abc\"")[0]["text"]);
  EXPECT_EQ(both[1]["text"], text("[23,24,25]")[0]["text"]);
  EXPECT_EQ(both[1]["index"], 1);
}

TEST(ServiceTest, AnAdapterIsAModelOfItsOwn) {
  ServiceBench bench;
  const std::string rest = R"(","prompt":"abc","temperature":0})";
  const Json base = json_of(bench.post(kTextPath, R"({"model":"base)" + rest));
  const Json tuned =
      json_of(bench.post(kTextPath, R"({"model":"tuned)" + rest));
  EXPECT_NE(base["choices"][0]["text"], tuned["choices"][0]["text"]);
  const std::string none = bench.post(kTextPath, R"({"model":"other)" + rest);
  EXPECT_EQ(status_of(none), 404);
  EXPECT_EQ(json_of(none)["error"]["code"], "model_not_found");
}

// log softmax of the fake model's logits, the long way.
double log_prob(const std::vector<std::int32_t>& before, std::int32_t id) {
  const auto row = infer::FakeRunner::logits_after(before, 32);
  double sum = 0;
  for (const float v : row) sum += std::exp(static_cast<double>(v));
  return row[static_cast<std::size_t>(id)] - std::log(sum);
}

TEST(ServiceTest, ATeacherGetsThePromptsLogProbabilities) {
  ServiceBench bench;
  const Json answer = json_of(bench.post(
      kTextPath, R"({"model":"base","prompt":"abcd","echo":true,"logprobs":3,)"
                 R"("max_tokens":0,"return_token_ids":true})"
  ));
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], "abcd");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  const Json& probs = choice["logprobs"];
  EXPECT_EQ(probs["tokens"], Json::parse(R"(["a","b","c","d"])"));
  EXPECT_EQ(probs["text_offset"], Json::parse("[0,1,2,3]"));
  EXPECT_EQ(probs["token_ids"], Json::parse("[0,1,2,3]"));
  EXPECT_TRUE(probs["token_logprobs"][0].is_null());
  EXPECT_TRUE(probs["top_logprobs"][0].is_null());
  for (std::int32_t i = 1; i < 4; ++i) {
    std::vector<std::int32_t> before;
    for (std::int32_t k = 0; k < i; ++k) before.push_back(k);
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(
        probs["token_logprobs"][at].get<double>(), log_prob(before, i), 1e-4
    );
    const Json& top = probs["top_token_ids"][at];
    ASSERT_EQ(top.size(), 3U);
    EXPECT_NEAR(top[0][1].get<double>(), log_prob(before, top[0][0]), 1e-4);
    EXPECT_GE(top[0][1], top[1][1]);
  }
}

TEST(ServiceTest, EchoStreamsThePromptFirst) {
  ServiceBench bench;
  const auto events = events_of(bench.post(
      kTextPath,
      R"({"model":"base","prompt":"abcd","echo":true,"max_tokens":3,)"
      R"("stream":true,"logprobs":1})"
  ));
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["text"], "abcd");
  const Json second = Json::parse(events[1])["choices"][0];
  EXPECT_EQ(second["logprobs"]["text_offset"][0], 4);
  const Json plain = json_of(bench.post(
      kTextPath,
      R"({"model":"base","prompt":"abcd","echo":true,"max_tokens":0})"
  ));
  EXPECT_EQ(plain["choices"][0]["text"], "abcd");
}

TEST(ServiceTest, ATeachersAnswerLargerThanWhatMayWaitIsStreamed) {
  BenchOptions options;
  options.http.max_waiting = 4096;
  ServiceBench bench(options);
  const std::string answer = bench.post(
      kTextPath, R"({"model":"base","echo":true,"logprobs":32,"max_tokens":0,)"
                 R"("stream":true,"prompt":")" +
                     std::string(250, 'a') + "\"}"
  );
  EXPECT_GT(answer.size(), 50'000U);
  const auto events = events_of(answer);
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  const Json first = Json::parse(events[0])["choices"][0];
  EXPECT_EQ(first["logprobs"]["tokens"].size(), 250U);
}

TEST(ServiceTest, ChatLogProbsHaveBytesAndAlternatives) {
  ServiceBench bench;
  const Json answer = json_of(
      bench.post(kChatPath, chat_body(R"(,"logprobs":true,"top_logprobs":2)"))
  );
  const Json& choice = answer["choices"][0];
  const Json& list = choice["logprobs"]["content"];
  ASSERT_EQ(list.size(), 8U);
  std::string text;
  for (const Json& token : list) {
    // At temperature 0 the token is the first of its alternatives.
    EXPECT_EQ(token["top_logprobs"].size(), 2U);
    EXPECT_EQ(token["token"], token["top_logprobs"][0]["token"]);
    EXPECT_EQ(token["logprob"], token["top_logprobs"][0]["logprob"]);
    if (token["token"] != "<end>") text += token["token"];
  }
  EXPECT_EQ(text, choice["message"]["content"].get<std::string>());
}

TEST(ServiceTest, StopTextsEndAnAnswer) {
  ServiceBench bench;
  const Json whole = json_of(bench.post(kChatPath, chat_body()));
  const std::string text = whole["choices"][0]["message"]["content"];
  const std::string stop = text.substr(3, 2);
  const Json cut = json_of(
      bench.post(kChatPath, chat_body(",\"stop\":" + Json(stop).dump()))
  );
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(
      cut["choices"][0]["message"]["content"], text.substr(0, text.find(stop))
  );
}

TEST(ServiceTest, ABiasForbids) {
  ServiceBench bench;
  std::string bias;
  for (int i = 1; i < 32; ++i) {
    bias += (i > 1 ? ",\"" : "\"") + std::to_string(i) + "\":-100";
  }
  const Json answer = json_of(
      bench.post(kChatPath, chat_body(",\"logit_bias\":{" + bias + "}"))
  );
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "aaaaaaaa");
}

TEST(ServiceTest, AClientThatLeavesFreesTheEngine) {
  BenchOptions options;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(milliseconds(5));
  };
  ServiceBench bench(options);
  {
    TestClient client(bench.server->port());
    client.write(closing_request(
        "POST", kTextPath,
        R"({"model":"base","prompt":"a","max_tokens":240,"stream":true})"
    ));
    ASSERT_TRUE(client.read_until("data: "));
  }
  {
    // One that waits for a whole answer is noticed too.
    TestClient client(bench.server->port());
    client.write(closing_request(
        "POST", kTextPath, R"({"model":"base","prompt":"ab","max_tokens":240})"
    ));
    client.read(30);
  }
  bool idle = false;
  for (int i = 0; i < 500 && !idle; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    const auto stats = bench.engine->stats();
    idle = stats.running + stats.waiting == 0 && stats.requests == 2;
  }
  EXPECT_TRUE(idle);
  EXPECT_LT(bench.engine->stats().made_tokens, 400U);
}

TEST(ServiceTest, AnAnswerThatTakesTooLongIsCut) {
  BenchOptions options;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(milliseconds(10));
  };
  options.service.timeout = milliseconds(150);
  ServiceBench bench(options);
  const std::string body = R"({"model":"base","prompt":"a","max_tokens":240)";
  EXPECT_EQ(status_of(bench.post(kTextPath, body + "}")), 504);
  const auto events =
      events_of(bench.post(kTextPath, body + ",\"stream\":true}"));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(Json::parse(events.back())["error"]["code"], "timeout");
  const std::string text = bench.get("/metrics");
  EXPECT_NE(text.find("hearth_requests_timed_out_total 2\n"), text.npos);
  EXPECT_NE(text.find("hearth_requests_open 0\n"), text.npos) << text;
}

TEST(ServiceTest, CutOffAnswersEndWithAWord) {
  BenchOptions options;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(milliseconds(5));
  };
  ServiceBench bench(options);
  TestClient streams(bench.server->port()), waits(bench.server->port());
  const std::string body = R"({"model":"base","prompt":"a","max_tokens":240)";
  streams.write(closing_request("POST", kTextPath, body + ",\"stream\":true}"));
  waits.write(closing_request("POST", kTextPath, body + "}"));
  ASSERT_TRUE(streams.read_until("data: "));
  while (bench.engine->stats().requests < 2) std::this_thread::yield();
  bench.service->drain();
  EXPECT_EQ(bench.server->drain(milliseconds(1)), 2U);
  bench.service->cut_off();
  EXPECT_EQ(bench.server->stop(milliseconds(20'000)), 0U);
  const auto events = events_of(streams.read_all());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(Json::parse(events.back())["error"]["code"], "server_stopped");
  EXPECT_EQ(status_of(waits.read_all()), 503);
}

TEST(ServiceTest, HealthAndMetricsAnswerWhileRequestsAreRead) {
  // As good as workers that are all busy.
  BenchOptions options;
  options.http.workers = 0;
  ServiceBench bench(options);
  TestClient never(bench.server->port());
  never.write(closing_request("POST", kChatPath, chat_body()));
  EXPECT_EQ(status_of(bench.get("/health")), 200);
  EXPECT_EQ(status_of(bench.get("/metrics")), 200);
  EXPECT_EQ(status_of(bench.get("/v1/models")), 200);
  EXPECT_EQ(status_of(bench.get("/")), 200);
}

TEST(ServiceTest, DrainingRefusesNewWorkAndSaysSo) {
  ServiceBench bench;
  EXPECT_EQ(status_of(bench.get("/health")), 200);
  bench.service->drain();
  const std::string refused = bench.post(kChatPath, chat_body());
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_NE(refused.find("Retry-After"), std::string::npos);
  EXPECT_EQ(status_of(bench.get("/health")), 503);
  EXPECT_EQ(json_of(bench.get("/health"))["status"], "draining");
}

TEST(ServiceTest, ModelsAndMetricsAreListed) {
  ServiceBench bench;
  const Json models = json_of(bench.get("/v1/models"));
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][1]["id"], "tuned");
  EXPECT_EQ(json_of(bench.get("/v1/models/base"))["id"], "base");
  bench.post(kChatPath, chat_body());
  std::string text;
  // Pages are given back a moment after the answer.
  for (int i = 0; i < 200 && text.find("hearth_kv_pages_used 0\n") == text.npos;
       ++i) {
    text = bench.get("/metrics");
  }
  for (const char* line :
       {"hearth_made_tokens_total 8\n", "hearth_requests_total 1\n",
        "hearth_requests_done_total 1\n", "hearth_requests_open 0\n",
        "hearth_sequences_total 1\n", "hearth_kv_pages 64\n",
        "hearth_kv_pages_used 0\n", "hearth_build_info{version=\"\"} 1\n",
        "hearth_http_answers_total{route=\"/v1/chat/completions\",status="
        "\"200\"} 1\n",
        "hearth_first_token_seconds_count 1\n",
        "# TYPE hearth_request_seconds histogram\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(ServiceTest, ThePageIsClosedToEverythingForeign) {
  ServiceBench bench;
  const std::string page = bench.get("/");
  EXPECT_EQ(status_of(page), 200);
  EXPECT_NE(
      page.find("Content-Security-Policy: default-src 'none'"), page.npos
  );
  EXPECT_EQ(page.find("http://"), page.npos);
  EXPECT_EQ(page.find("https://"), page.npos);
  for (const char* file :
       {"/chat.js", "/settings.js", "/view.js", "/chat.css", "/markdown.js",
        "/icon.svg"}) {
    EXPECT_EQ(status_of(bench.get(file)), 200) << file;
  }
}

}  // namespace
}  // namespace hearth::serve
