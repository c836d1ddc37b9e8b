#include "hearth/serve/http_server.h"

#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/serve/listen_socket.h"
#include "hearth/serve/test_client_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

// Answers /echo with the body, /stream in three pieces, and keeps the reply of
// /hold for the test to write.
struct Bench {
  explicit Bench(HttpServerOptions options = {})
      : server(options, [this](HttpRequest request, auto reply) {
          handle(std::move(request), reply);
        }) {
    server.start();
  }

  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/echo") reply->send({200, {}, request.body});
    if (request.path == "/throw") throw std::runtime_error("no");
    if (request.path == "/stream") {
      reply->begin({200, {}, {}});
      for (const char* piece : {"one ", "two ", "three"}) reply->write(piece);
      reply->end();
    }
    if (request.path == "/hold") {
      reply->on_gone([this] { ++gone; });
      const std::lock_guard lock(mutex);
      held.push_back(std::move(reply));
    }
  }
  std::shared_ptr<HttpReply> wait_for_held() {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex);
        if (!held.empty()) return held.back();
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return nullptr;
  }
  static bool eventually(const std::function<bool()>& what) {
    for (int i = 0; i < 5000 && !what(); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return what();
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<HttpReply>> held;
  std::atomic<int> gone{0};
  HttpServer server;
};

std::string body_of(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}

TEST(HttpServer, AnswersAndCloses) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("POST", "/echo", "hello"));
  const std::string answer = client.read_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_EQ(body_of(answer), "hello");
}

TEST(HttpServer, KeepsAConnectionForManyRequests) {
  Bench bench;
  TestClient client(bench.server.port());
  for (const std::string body : {"first", "second", "third"}) {
    client.write(
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body
    );
    EXPECT_TRUE(client.read_until(body));
  }
  EXPECT_EQ(bench.server.counters().accepted, 1U);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Bench bench;
  TestClient client(bench.server.port());
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n" +
           std::to_string(10 + i);
  }
  client.write(all + closing_request("POST", "/echo", "last"));
  const std::string answer = client.read_all();
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    at = answer.find("\r\n\r\n" + std::to_string(10 + i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_TRUE(answer.ends_with("last"));
}

TEST(HttpServer, StreamsInChunksAndToOldClientsWithout) {
  Bench bench;
  TestClient modern(bench.server.port()), old(bench.server.port());
  modern.write("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(modern.read_until("0\r\n\r\n"));
  EXPECT_NE(modern.got.find("4\r\none \r\n"), std::string::npos);
  old.write("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(old.read_all()), "one two three");
}

TEST(HttpServer, HeadHasNoBody) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("HEAD", "/echo", "hello"));
  const std::string answer = client.read_all();
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "");
}

TEST(HttpServer, AHandlerThatThrowsOrForgetsIsA500) {
  Bench bench;
  for (const char* path : {"/throw", "/forgets"}) {
    TestClient client(bench.server.port());
    client.write(closing_request("GET", path));
    EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 500 ")) << path;
  }
}

TEST(HttpServer, SaysContinueAndRefusesWhatIsTooLarge) {
  HttpServerOptions options;
  options.limits.max_body = 10;
  Bench bench(options);
  TestClient asks(bench.server.port()), large(bench.server.port());
  asks.write(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n"
  );
  EXPECT_TRUE(asks.read_until("100 Continue\r\n\r\n"));
  asks.write("ok");
  EXPECT_TRUE(asks.read_until("\r\n\r\nok"));
  // The answer must survive the body that is still being sent.
  large.write(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" +
      std::string(100'000, 'x')
  );
  EXPECT_TRUE(large.read_all().starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(bench.server.counters().faults, 1U);
}

TEST(HttpServer, ASlowRequestIsTimedOutAsAWhole) {
  HttpServerOptions options;
  options.head_timeout = milliseconds(150);
  options.idle_timeout = milliseconds(300);
  Bench bench(options);
  TestClient drip(bench.server.port()), idle(bench.server.port());
  const auto start = Clock::now();
  drip.write("GET /echo HT");
  // Each byte is in time; all of them are not.
  for (int i = 0; i < 30 && !drip.read(20); ++i) drip.write("T");
  EXPECT_TRUE(drip.read_all().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));
}

TEST(HttpServer, AClientThatLeavesIsNoticedBeforeAnythingIsWritten) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  client.hang_up();
  EXPECT_TRUE(Bench::eventually([&] { return bench.gone == 1; }));
  EXPECT_FALSE(reply->write("x"));
  EXPECT_EQ(bench.server.counters().left, 1U);
}

TEST(HttpServer, AClientThatDoesNotReadIsLetGoAndNobodyWaits) {
  HttpServerOptions options;
  options.max_waiting = 64 << 10;
  Bench bench(options);
  TestClient client(bench.server.port(), 4096);
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  reply->begin({200, {}, {}});
  const std::string piece(8192, 'x');
  const auto start = Clock::now();
  // The system's own buffers take some megabytes before ours fills.
  int written = 0;
  while (written < 10'000 && reply->write(piece)) ++written;
  EXPECT_LT(written, 10'000);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(Bench::eventually([&] { return bench.gone == 1; }));
  EXPECT_EQ(bench.server.counters().too_slow, 1U);
}

TEST(HttpServer, AStalledClientIsTimedOut) {
  HttpServerOptions options;
  options.max_waiting = std::size_t{64} << 20;
  options.write_timeout = milliseconds(200);
  Bench bench(options);
  TestClient client(bench.server.port(), 4096);
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  reply->begin({200, {}, {}});
  EXPECT_TRUE(reply->write(std::string(std::size_t{32} << 20, 'x')));
  EXPECT_TRUE(Bench::eventually([&] { return bench.gone == 1; }));
}

TEST(HttpServer, DeadlineOfAnAnswerIsKept) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  reply->on_deadline(Clock::now() + milliseconds(50), [&] {
    reply->send({504, {}, "late"});
  });
  EXPECT_TRUE(client.read_all().ends_with("late"));
}

TEST(HttpServer, StopLetsAnswersEndAndTakesNoMore) {
  Bench bench;
  const int port = bench.server.port();
  TestClient client(port), idle(port);
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_ANY_THROW(TestClient(port).read());
    reply->send({200, {}, "done"});
  });
  EXPECT_TRUE(bench.server.stop(milliseconds(10'000)));
  later.join();
  EXPECT_TRUE(client.read_all().ends_with("done"));
  EXPECT_EQ(idle.read_all(), "");
}

TEST(HttpServer, StopEndsWhatDoesNotEnd) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  EXPECT_FALSE(bench.server.stop(milliseconds(50)));
  EXPECT_EQ(bench.gone, 1);
  reply->send({200, {}, "nobody hears"});
}

TEST(HttpServer, BoundsItsConnections) {
  HttpServerOptions options;
  options.max_connections = 2;
  Bench bench(options);
  TestClient a(bench.server.port()), b(bench.server.port());
  EXPECT_TRUE(Bench::eventually([&] {
    return bench.server.counters().open == 2;
  }));
  TestClient c(bench.server.port());
  EXPECT_EQ(c.read_all(), "");
  EXPECT_EQ(bench.server.counters().refused, 1U);
}

TEST(ListenSocket, NamesWhatItCannotListenOn) {
  EXPECT_THROW(listen_on("example.org", 0), UsageError);
  EXPECT_THROW(listen_on("127.0.0.1", 70000), UsageError);
  const auto taken = listen_on("127.0.0.1", 0);
  EXPECT_THROW(listen_on("127.0.0.1", taken.port), IoError);
  close(taken.fd);
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("127.9.9.9"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("::"));
  EXPECT_FALSE(is_loopback("localhost"));
}

}  // namespace
}  // namespace hearth::serve
