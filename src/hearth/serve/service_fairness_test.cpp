// What the requests of one key may take from those of others, or learn of them.
#include <gtest/gtest.h>

#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

constexpr const char* kFirst = "Authorization: Bearer first-key-0123456789\r\n";
constexpr const char* kSecond =
    "Authorization: Bearer second-key-0123456789\r\n";

BenchOptions with_keys() {
  BenchOptions out;
  out.service.access.keys.add("first-key-0123456789");
  out.service.access.keys.add("second-key-0123456789");
  return out;
}

int cached_in(const std::string& answer) {
  return json_of(answer)["usage"]["prompt_tokens_details"]["cached_tokens"];
}

TEST(ServiceFairness, AKeyFindsOnlyItsOwnPrompts) {
  ServiceBench bench(with_keys());
  const std::string body = R"({"model":"base","max_tokens":4,"prompt":")" +
                           std::string(120, 'a') + "\"}";
  const auto cached = [&](const char* key) {
    return cached_in(bench.post(kTextPath, body, key));
  };
  EXPECT_EQ(cached(kFirst), 0);
  EXPECT_EQ(cached(kSecond), 0);
  EXPECT_GT(cached(kFirst), 60);
  EXPECT_GT(cached(kSecond), 60);
}

TEST(ServiceFairness, AKeyMayHaveSoManyTextsUnderWay) {
  BenchOptions options = with_keys();
  options.service.per_key = 3;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(milliseconds(5));
  };
  ServiceBench bench(options);
  const std::string body = R"({"model":"base","prompt":"a")";
  TestClient stream(bench.server->port());
  stream.write(closing_request(
      "POST", kTextPath, body + R"(,"max_tokens":240,"n":2,"stream":true})",
      kFirst
  ));
  ASSERT_TRUE(stream.read_until("data: "));
  const std::string two = body + R"(,"n":2,"max_tokens":2})";
  const std::string refused = bench.post(kTextPath, two, kFirst);
  EXPECT_EQ(status_of(refused), 429);
  EXPECT_EQ(json_of(refused)["error"]["code"], "key_limit");
  EXPECT_NE(refused.find("Retry-After"), std::string::npos);
  EXPECT_EQ(status_of(bench.post(kTextPath, two, kSecond)), 200);
  const std::string one = body + R"(,"max_tokens":2})";
  EXPECT_EQ(status_of(bench.post(kTextPath, one, kFirst)), 200);
  const std::string never = body + R"(,"n":4,"max_tokens":2})";
  EXPECT_EQ(status_of(bench.post(kTextPath, never, kSecond)), 400);
  stream.hang_up();
  for (int i = 0; i < 5000 && bench.engine->stats().running > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(status_of(bench.post(kTextPath, two, kFirst)), 200);
}

TEST(ServiceFairness, SlowReadersKeepNobodyOut) {
  BenchOptions options;
  options.http.max_waiting = 4096;
  options.engine.max_batch = 2;
  options.engine.max_queue = 1;
  options.runner.pages = 256;
  ServiceBench bench(options);
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<TestClient>(bench.server->port(), 2048));
    slow.back()->write(closing_request(
        "POST", kTextPath,
        R"({"model":"base","prompt":"a","max_tokens":250,"stream":true,)"
        R"("logprobs":32,"return_token_ids":true})"
    ));
  }
  // For good: what the sockets still take lets one go on for a moment.
  int held_for = 0;
  for (int i = 0; i < 20'000 && held_for < 300; ++i) {
    held_for = bench.engine->stats().held == 3 ? held_for + 1 : 0;
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_EQ(bench.engine->stats().held, 3U);
  for (int i = 0; i < 3; ++i) {
    const std::string answer = bench.post(
        kTextPath, R"({"model":"base","prompt":"abc","max_tokens":4})"
    );
    EXPECT_EQ(status_of(answer), 200) << answer;
  }
}

TEST(ServiceFairness, EqualPromptsAreScoredOnce) {
  ServiceBench bench;
  const auto choices = [&](const std::string& more) {
    return json_of(bench.post(
        kTextPath,
        R"({"model":"base","echo":true,"logprobs":3,"seed":4,)" + more + "}"
    ))["choices"];
  };
  const Json one = choices(R"("prompt":"abcd","max_tokens":0)");
  EXPECT_EQ(bench.engine->stats().requests, 1U);
  const Json many =
      choices(R"("prompt":["abcd","xy","abcd"],"n":3,"max_tokens":0)");
  EXPECT_EQ(bench.engine->stats().requests, 3U);
  ASSERT_EQ(many.size(), 9U);
  for (const std::size_t i : {0U, 1U, 2U, 6U, 7U, 8U}) {
    EXPECT_EQ(many[i]["index"], i);
    EXPECT_EQ(many[i]["text"], "abcd");
    EXPECT_EQ(many[i]["logprobs"], one[0]["logprobs"]);
  }
  EXPECT_EQ(many[4]["text"], "xy");
}

// Each has the prompt's scores and goes on by itself, also where it is so much
// ahead that the scores come later.
TEST(ServiceFairness, ChoicesThatShareScoresGoOnByThemselves) {
  ServiceBench bench;
  const std::string body =
      R"({"model":"base","prompt":"abcdefghijklmnopqrstuvwxyz","logprobs":2,)"
      R"("seed":4,"max_tokens":5,"n":3)";
  const Json plain = json_of(bench.post(kTextPath, body + "}"));
  const Json echoed = json_of(bench.post(kTextPath, body + R"(,"echo":true})"));
  const std::string streamed =
      bench.post(kTextPath, body + R"(,"echo":true,"stream":true})");
  std::vector<std::string> texts(3);
  std::vector<std::size_t> tokens(3);
  for (const auto& event : events_of(streamed)) {
    if (event == "[DONE]") continue;
    const Json piece = Json::parse(event)["choices"][0];
    const std::size_t index = piece["index"];
    texts[index] += piece["text"];
    if (piece["logprobs"].is_null()) continue;
    EXPECT_EQ(
        piece["logprobs"]["text_offset"][0],
        texts[index].size() - piece["text"].get<std::string>().size()
    );
    tokens[index] += piece["logprobs"]["tokens"].size();
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& choice = echoed["choices"][i];
    const std::string made = plain["choices"][i]["text"];
    EXPECT_EQ(choice["text"], "abcdefghijklmnopqrstuvwxyz" + made);
    EXPECT_EQ(texts[i], choice["text"].get<std::string>());
    const Json& probs = choice["logprobs"]["token_logprobs"];
    ASSERT_EQ(probs.size(), 31U);
    EXPECT_EQ(tokens[i], 31U);
    EXPECT_EQ(probs[3], echoed["choices"][0]["logprobs"]["token_logprobs"][3]);
    EXPECT_EQ(probs[26], plain["choices"][i]["logprobs"]["token_logprobs"][0]);
  }
  EXPECT_EQ(echoed["usage"]["prompt_tokens"], 26);
  EXPECT_EQ(echoed["usage"]["completion_tokens"], 15);
}

TEST(ServiceFairness, MoreLogProbsThanOneAnswerMayHoldAreRefused) {
  BenchOptions options;
  options.runner.context = 8192;
  options.runner.pages = 4096;
  options.service.limits.max_tokens = 8000;
  ServiceBench bench(options);
  const auto refused = [&](const char* path, const std::string& body) {
    const std::string answer = bench.post(path, body);
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_NE(answer.find("log probabilities"), std::string::npos) << answer;
    return std::string(json_of(answer)["error"]["param"]);
  };
  const std::string text = R"({"model":"base","prompt":")";
  EXPECT_EQ(
      refused(
          kTextPath, text + R"(a","n":16,"max_tokens":4000,"logprobs":64})"
      ),
      "logprobs"
  );
  EXPECT_EQ(
      refused(
          kTextPath, text + std::string(2000, 'a') +
                         R"(","n":16,"max_tokens":0,"echo":true,"logprobs":64})"
      ),
      "logprobs"
  );
  EXPECT_EQ(
      refused(
          kChatPath,
          R"({"model":"base","messages":[{"role":"user","content":"hello"}],)"
          R"("n":16,"logprobs":true,"top_logprobs":20,"max_tokens":8000})"
      ),
      "top_logprobs"
  );
  EXPECT_EQ(bench.engine->stats().requests, 0U);
}

// A request as the loop hands it to a worker, and its answer.
struct Asked {
  Asked()
      : request{
            .method = "POST",
            .path = kChatPath,
            .headers = {{"Host", "localhost"}},
            .body = chat_body()
        } {}
  int status() {
    const auto bytes = reply->pull().bytes;
    return bytes.empty() ? 0 : status_of(bytes);
  }
  HttpRequest request;
  std::shared_ptr<HttpReply> reply =
      std::make_shared<HttpReply>(HttpReply::Terms{.wake = [] {}});
};

TEST(ServiceFairness, WhatIsMoreThanALittleWorkTakesLong) {
  BenchOptions options;
  options.service.quick_effort = 10;
  ServiceBench bench(options);
  Asked asked;
  EXPECT_THROW(
      bench.service->handle_quick(asked.request, asked.reply), TakesLong
  );
  EXPECT_EQ(bench.engine->stats().requests, 0U);
  EXPECT_EQ(asked.status(), 0);
  bench.service->handle(asked.request, asked.reply);
  for (int i = 0; i < 5000 && bench.engine->stats().requests == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(bench.engine->stats().requests, 1U);
  // The whole way, with pools of workers.
  EXPECT_EQ(status_of(bench.post(kChatPath, chat_body())), 200);
}

TEST(ServiceFairness, WorkThatTakesTooLongIsGivenUp) {
  BenchOptions options;
  options.service.prepare_time = milliseconds(-1);
  ServiceBench bench(options);
  Asked asked;
  bench.service->handle(asked.request, asked.reply);
  EXPECT_EQ(asked.status(), 503);
  EXPECT_EQ(bench.engine->stats().requests, 0U);
}

TEST(ServiceFairness, NobodyWorksForAClientThatHasLeft) {
  ServiceBench bench;
  Asked asked;
  asked.reply->client_left();
  bench.service->handle_quick(asked.request, asked.reply);
  bench.service->handle(asked.request, asked.reply);
  EXPECT_EQ(bench.engine->stats().requests, 0U);
}

TEST(ServiceFairness, NobodyBeginsToWorkOnceTheDrainTimeIsOver) {
  ServiceBench bench;
  bench.service->cut_off();
  for (const bool quick : {true, false}) {
    Asked asked;
    if (quick) {
      bench.service->handle_quick(asked.request, asked.reply);
    } else {
      bench.service->handle(asked.request, asked.reply);
    }
    EXPECT_EQ(asked.status(), 503);
  }
  EXPECT_EQ(bench.engine->stats().requests, 0U);
}

TEST(ServiceFairness, HealthTellsOfWorkersThatAreLateOrStuck) {
  HttpServer::Workers workers;
  ServiceOptions options;
  options.workers = [&] { return workers; };
  Service service(options, {});
  const auto health = [&] {
    const auto answer = service.gate(
        {.method = "GET", .path = "/health", .headers = {{"Host", "localhost"}}}
    );
    return std::pair(answer->status, Json::parse(answer->body));
  };
  EXPECT_EQ(health().second, Json::parse(R"({"status":"ok"})"));
  workers.slow = {.threads = 2, .busy = 1, .longest_run = 2.5};
  EXPECT_EQ(health().first, 200);
  EXPECT_EQ(health().second["status"], "late");
  EXPECT_EQ(health().second["workers"]["slow"]["longest_run_s"], 2.5);
  workers.slow = {.threads = 2, .busy = 2, .waiting = 9, .longest_wait = 100};
  EXPECT_EQ(health().second["status"], "late");
  workers.slow = {};
  workers.quick = {.threads = 2, .busy = 2, .waiting = 1, .longest_wait = 31};
  EXPECT_EQ(health().first, 503);
  EXPECT_EQ(health().second["status"], "stuck");
}

TEST(ServiceFairness, HealthCountsTheThreadsOfGrammars) {
  const auto with = [](WorkerQueue::State grammars) {
    return condition_of({{}, {}, grammars}, 2, 30);
  };
  EXPECT_EQ(with({}), Condition::ok);
  EXPECT_EQ(with({.longest_run = 1.9, .longest_wait = 1.9}), Condition::ok);
  EXPECT_EQ(with({.longest_run = 2.1}), Condition::late);
  EXPECT_EQ(with({.longest_wait = 100}), Condition::late);
  EXPECT_EQ(with({.longest_run = 31}), Condition::stuck);
}

}  // namespace
}  // namespace hearth::serve
