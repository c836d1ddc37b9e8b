// Who may ask: keys, names, origins.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

constexpr std::string_view kKey = "0123456789abcdef-key";

BenchOptions with_key() {
  BenchOptions options;
  options.service.access.keys.add(std::string(kKey));
  options.service.access.keys.add("another-key-that-is-long");
  return options;
}

TEST(AccessTest, AKeyIsNeededWhereThereAreKeys) {
  ServiceBench bench(with_key());
  const std::string good =
      "Authorization: Bearer " + std::string(kKey) + "\r\n";
  const std::string bad = "Authorization: Bearer 0123456789abcdef-kez\r\n";
  EXPECT_EQ(status_of(bench.get("/v1/models")), 401);
  EXPECT_EQ(status_of(bench.get("/metrics")), 401);
  const std::string refused = bench.get("/v1/models", bad);
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_EQ(refused.find(kKey), std::string::npos);
  EXPECT_EQ(refused.find("kez"), std::string::npos);
  EXPECT_EQ(status_of(bench.get("/v1/models", good)), 200);
  EXPECT_EQ(
      status_of(bench.post("/v1/completions", R"({"model":"base"})")), 401
  );
  // What holds no secret needs no key.
  EXPECT_EQ(status_of(bench.get("/health")), 200);
  EXPECT_EQ(status_of(bench.get("/")), 200);
}

TEST(AccessTest, AKeyIsAskedForBeforeTheBodyIsRead) {
  ServiceBench bench(with_key());
  TestClient client(bench.server->port());
  client.write(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n"
  );
  EXPECT_TRUE(client.read_until("invalid_api_key")) << client.got;
  EXPECT_EQ(status_of(client.got), 401);
  const std::string text = bench.get(
      "/metrics", "Authorization: Bearer " + std::string(kKey) + "\r\n"
  );
  EXPECT_NE(text.find("hearth_keys_refused_total 1\n"), text.npos);
}

TEST(AccessTest, KeysAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcabc"));
  EXPECT_FALSE(same_secret("abcabc", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
  EXPECT_FALSE(same_secret("abc", ""));
  ApiKeys keys;
  keys.add("one-key");
  keys.add("two-key");
  EXPECT_TRUE(keys.accepts_header("Bearer two-key"));
  EXPECT_TRUE(keys.accepts_header("bearer one-key"));
  EXPECT_FALSE(keys.accepts_header("one-key"));
  EXPECT_FALSE(keys.accepts_header("Bearer "));
  EXPECT_FALSE(keys.accepts_header("Basic one-key"));
}

TEST(AccessTest, KeyFilesAreReadAndNeverShown) {
  const TempFolder folder;
  const auto load = [&](const std::string& text) {
    return ApiKeys::load({folder.write("keys", text)});
  };
  const auto keys = load("# mine\nfirst-key-0123456\r\n\nsecond-key-012345\n");
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_TRUE(keys.accepts("first-key-0123456"));
  for (const char* wrong :
       {"", "# nothing\n", "short\n", "has a space in it 012345\n"}) {
    try {
      load(wrong);
      ADD_FAILURE() << wrong;
    } catch (const UsageError& e) {
      EXPECT_EQ(std::string(e.what()).find("short"), std::string::npos);
    }
  }
  EXPECT_THROW(ApiKeys::load({folder / "none"}), Error);
}

TEST(AccessTest, OnlyNamesOfThisMachineReachALoopbackServer) {
  AccessRules rules;
  const auto allowed = [&](const std::string& host) {
    HttpRequest request;
    request.headers = {{"Host", host}};
    try {
      check_host(rules, request);
      return true;
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status(), 403);
      return false;
    }
  };
  for (const char* own :
       {"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:8080",
        "127.1.2.3", "[::1]:8080", "[::1]", "localhost:"}) {
    EXPECT_TRUE(allowed(own)) << own;
  }
  for (const char* foreign :
       {"evil.example", "evil.example:8080", "localhost.evil.example",
        "127.0.0.1.evil.example", "127.evil.example", "127.0.0.1.5", "127.0.0",
        "", "[::2]", "192.168.0.1", "[::1].evil.example", "[::1",
        "127.0.0.1:8080@evil.example", "localhost:80.evil.example",
        "localhost:80:90", "app.example"}) {
    EXPECT_FALSE(allowed(foreign)) << foreign;
  }
  rules.host_names = {"app.example"};
  EXPECT_TRUE(allowed("APP.example:443"));
  EXPECT_FALSE(allowed("app.example.evil"));
  // Nobody can point an address elsewhere.
  rules.hosts = HostRule::addresses;
  EXPECT_TRUE(allowed("192.168.0.1:8080"));
  EXPECT_TRUE(allowed("[fe80::1]:80"));
  EXPECT_TRUE(allowed("app.example"));
  EXPECT_FALSE(allowed("evil.example"));
  rules.hosts = HostRule::any;
  EXPECT_TRUE(allowed("evil.example"));
}

TEST(AccessTest, PagesOfOtherOriginsAreRefusedUnlessNamed) {
  BenchOptions options;
  options.service.access.cors_origins = {"https://app.example"};
  ServiceBench bench(options);
  const std::string foreign = "Origin: https://evil.example\r\n";
  const std::string named = "Origin: https://app.example\r\n";
  const std::string own = "Origin: http://localhost\r\n";
  EXPECT_EQ(status_of(bench.get("/v1/models", foreign)), 403);
  EXPECT_EQ(status_of(bench.get("/v1/models", own)), 200);
  const std::string answer = bench.get("/v1/models", named);
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(
      answer.find("Access-Control-Allow-Origin: https://app.example\r\n"),
      answer.npos
  );
  const std::string asked =
      "Access-Control-Request-Headers: authorization,x-stainless-os\r\n";
  const std::string preflight =
      bench.raw(closing_request("OPTIONS", "/v1/models", {}, named + asked));
  EXPECT_EQ(status_of(preflight), 204);
  EXPECT_NE(
      preflight.find(
          "Access-Control-Allow-Headers: authorization,x-stainless-os\r\n"
      ),
      preflight.npos
  );
  EXPECT_EQ(
      status_of(
          bench.raw(closing_request("OPTIONS", "/v1/models", {}, foreign))
      ),
      403
  );
  // Nobody's page asks: it is a method like another.
  const std::string asks = bench.raw(closing_request("OPTIONS", kChatPath));
  EXPECT_EQ(status_of(asks), 405);
  EXPECT_NE(asks.find("Allow: POST\r\n"), asks.npos);
  ServiceBench plain;
  EXPECT_EQ(status_of(plain.get("/v1/models", named)), 403);
}

TEST(AccessTest, TheHostOfAWholeUrlCounts) {
  ServiceBench bench;
  EXPECT_EQ(status_of(bench.get("http://127.0.0.1:8080/health")), 200);
  EXPECT_EQ(status_of(bench.get("http://evil.example/health")), 403);
}

TEST(AccessTest, APackedBodyIsRefusedByName) {
  ServiceBench bench;
  const std::string body = R"({"model":"base","prompt":"a","max_tokens":1})";
  const std::string packed =
      bench.post(kTextPath, body, "Content-Encoding: gzip\r\n");
  EXPECT_EQ(status_of(packed), 415);
  EXPECT_NE(packed.find("Content-Encoding"), packed.npos);
  EXPECT_EQ(
      status_of(bench.post(kTextPath, body, "Content-Encoding: identity\r\n")),
      200
  );
}

TEST(AccessTest, AFormOfAnotherSiteCannotPost) {
  ServiceBench bench;
  const std::string body = R"({"model":"base","prompt":"a"})";
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: "
      "close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n";
  EXPECT_EQ(
      status_of(bench.raw(head + "Content-Type: text/plain\r\n\r\n" + body)),
      415
  );
  EXPECT_EQ(status_of(bench.raw(head + "\r\n" + body)), 415);
  EXPECT_EQ(
      status_of(bench.raw(
          head + "Content-Type: application/json; charset=utf-8\r\n\r\n" + body
      )),
      200
  );
}

}  // namespace
}  // namespace hearth::serve
