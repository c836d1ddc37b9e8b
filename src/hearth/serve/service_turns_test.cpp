// Prompts of several keys over one model: nobody's long ones keep the others
// waiting, and /health tells of who has to.
#include <gtest/gtest.h>

#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

constexpr const char* kFirst = "Authorization: Bearer first-key-0123456789\r\n";
constexpr const char* kSecond =
    "Authorization: Bearer second-key-0123456789\r\n";
constexpr milliseconds kStep{5};

// Each prompt of 240 tokens takes 120 steps, 0.6 s at least.
BenchOptions slow_reading() {
  BenchOptions out;
  out.service.access.keys.add("first-key-0123456789");
  out.service.access.keys.add("second-key-0123456789");
  out.service.late_after = milliseconds(150);
  out.runner.pages = 1024;
  out.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(kStep);
  };
  out.engine.prefill_chunk = 2;
  return out;
}

std::string letters(std::size_t salt) {
  std::string out;
  for (std::size_t i = 0; i < 240; ++i) {
    out += static_cast<char>('a' + (i * (salt + 3) + salt) % 26);
  }
  return out;
}

struct Attack {
  std::vector<std::unique_ptr<TestClient>> clients;

  Attack(ServiceBench& bench, const char* path, const char* key) {
    for (std::size_t i = 0; i < 4; ++i) {
      Json body = {{"model", "base"}};
      if (path == kTextPath) body["max_tokens"] = 1;
      body[path == kTextPath ? "prompt" : "input"] = letters(i);
      clients.push_back(std::make_unique<TestClient>(bench.server->port()));
      clients.back()->write(
          closing_request("POST", path, to_json_line(body), key)
      );
    }
    for (int i = 0; i < 5000 && bench.engine->stats().requests < 4; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  void expect_answers() {
    for (const auto& client : clients) {
      EXPECT_EQ(status_of(client->read_all()), 200);
    }
  }
};

constexpr const char* kShort =
    R"({"model":"base","prompt":"ab","max_tokens":1})";

TEST(ServiceTurns, LongPromptsOfOneKeyKeepNoOtherWaiting) {
  for (const char* path : {kTextPath, "/v1/embeddings"}) {
    ServiceBench bench(slow_reading());
    Attack attack(bench, path, kFirst);
    const auto before = bench.engine->stats().steps;
    EXPECT_EQ(status_of(bench.post(kTextPath, kShort, kSecond)), 200);
    // Not the 480 steps that all of them take.
    EXPECT_LE(bench.engine->stats().steps - before, 60U) << path;
    EXPECT_EQ(status_of(bench.post(kTextPath, kShort, kFirst)), 200)
        << "its own short ones do not wait either";
    EXPECT_LE(bench.engine->stats().steps - before, 120U) << path;
    attack.expect_answers();
  }
}

TEST(ServiceTurns, HealthTellsOfWhoHasHadNone) {
  ServiceBench bench(slow_reading());
  EXPECT_EQ(json_of(bench.get("/health"))["status"], "ok");
  Attack attack(bench, kTextPath, kFirst);
  std::this_thread::sleep_for(milliseconds(300));
  const std::string answer = bench.get("/health");
  EXPECT_EQ(status_of(answer), 200);
  const Json health = json_of(answer);
  EXPECT_EQ(health["status"], "late");
  EXPECT_GE(health["turns"]["longest_wait_s"], 0.1);
  attack.expect_answers();
  EXPECT_EQ(json_of(bench.get("/health"))["status"], "ok");
}

}  // namespace
}  // namespace hearth::serve
