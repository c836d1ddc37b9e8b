#include "hearth/serve/http/http_server.h"

#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/serve/http/listen_socket.h"
#include "hearth/serve/http/test_client_test.h"

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

TEST(HttpServer, APieceLargerThanWhatMayWaitArrives) {
  HttpServerOptions options;
  options.max_waiting = 4096;
  Bench bench(options);
  TestClient client(bench.server.port());
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  reply->begin({200, {}, {}});
  const std::string piece(std::size_t{3} << 20, 'x');
  EXPECT_TRUE(reply->write(piece));
  EXPECT_TRUE(reply->write("the end"));
  reply->end();
  const std::string got = client.read_all();
  EXPECT_GT(got.size(), piece.size());
  EXPECT_TRUE(got.ends_with("the end\r\n0\r\n\r\n"));
  EXPECT_EQ(bench.server.counters().too_slow, 0U);
}

TEST(HttpServer, WhoeverWritesIsToldWhenToPauseAndWhenToGoOn) {
  HttpServerOptions options;
  options.max_waiting = 64 << 10;
  Bench bench(options);
  TestClient client(bench.server.port(), 4096);
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  reply->begin({200, {}, {}});
  EXPECT_FALSE(reply->on_room([] {}));
  // The system's own buffers take some megabytes before ours fills.
  std::atomic<int> room{0};
  const std::string piece(256 << 10, 'x');
  int written = 0;
  for (; written < 1000 && !reply->full(); ++written) {
    reply->write(piece);
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(reply->on_room([&] { ++room; }));
  EXPECT_EQ(room, 0);
  while (room == 0 && client.read()) continue;
  EXPECT_EQ(room, 1);
  reply->end();
  const std::string got = client.read_all();
  EXPECT_TRUE(got.ends_with("0\r\n\r\n"));
  EXPECT_GE(got.size(), piece.size() * static_cast<std::size_t>(written));
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
  EXPECT_FALSE(reply->write("more"));
  EXPECT_EQ(bench.server.counters().too_slow, 1U);
}

// Answers at once what is not /echo, /stream or /hold.
HttpServerOptions with_gate() {
  HttpServerOptions options;
  options.gate = [](const HttpRequest& head) -> std::optional<HttpAnswer> {
    if (head.path == "/closed") return HttpAnswer{401, {}, "no"};
    if (head.path == "/quick") return HttpAnswer{200, {}, "quick"};
    return {};
  };
  return options;
}

TEST(HttpServer, TheGateAnswersBeforeTheBodyComes) {
  Bench bench(with_gate());
  TestClient client(bench.server.port());
  client.write(
      "POST /closed HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n"
  );
  client.write(std::string(1000, 'x'));
  EXPECT_TRUE(client.read_until("\r\n\r\nno")) << client.got;
  EXPECT_TRUE(client.got.starts_with("HTTP/1.1 401 "));
  EXPECT_NE(client.got.find("Connection: close"), std::string::npos);
  // One that waits for a word before it sends the body is not asked for it.
  TestClient asks(bench.server.port());
  asks.write(
      "POST /closed HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: 5\r\n\r\n"
  );
  EXPECT_TRUE(asks.read_all().starts_with("HTTP/1.1 401 "));
}

TEST(HttpServer, TheGateKeepsConnectionsAndLetsTheRestPass) {
  Bench bench(with_gate());
  TestClient client(bench.server.port());
  const std::string get = " HTTP/1.1\r\nHost: h\r\n\r\n";
  std::string all;
  for (int i = 0; i < 40; ++i) all += "GET /quick" + get;
  all += "HEAD /quick" + get + "GET /stream" + get;
  client.write(all + closing_request("POST", "/echo", "last"));
  const std::string got = client.read_all();
  int quick = 0;
  for (std::size_t at = 0; (at = got.find("\r\n\r\nquick", at)) != got.npos;
       ++at) {
    ++quick;
  }
  EXPECT_EQ(quick, 40);
  EXPECT_NE(got.find("4\r\none \r\n"), got.npos);
  EXPECT_TRUE(got.ends_with("last"));
  EXPECT_EQ(bench.server.counters().accepted, 1U);
}

TEST(HttpServer, TheGateAnswersWhileEveryWorkerIsBusy) {
  std::atomic<bool> go{false};
  HttpServer server(with_gate(), [&](const HttpRequest&, auto reply) {
    while (!go) std::this_thread::sleep_for(milliseconds(1));
    reply->send({200, {}, "slow"});
  });
  server.start();
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 6; ++i) {
    slow.push_back(std::make_unique<TestClient>(server.port()));
    slow.back()->write(closing_request("GET", "/echo"));
  }
  TestClient quick(server.port());
  quick.write(closing_request("GET", "/quick"));
  EXPECT_TRUE(quick.read_all().ends_with("quick"));
  go = true;
  for (auto& client : slow) EXPECT_TRUE(client->read_all().ends_with("slow"));
}

TEST(HttpServer, BodiesTogetherAreBounded) {
  HttpServerOptions options;
  options.max_bodies = 300'000;
  Bench bench(options);
  const auto begin = [&](std::size_t size) {
    auto client = std::make_unique<TestClient>(bench.server.port());
    client->write(
        "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        "Content-Length: " +
        std::to_string(size + 1) + "\r\n\r\n" + std::string(size, 'x')
    );
    return client;
  };
  const auto first = begin(200'000);
  EXPECT_TRUE(Bench::eventually([&] {
    return bench.server.counters().bytes_in > 200'000;
  }));
  EXPECT_TRUE(begin(200'000)->read_all().starts_with("HTTP/1.1 503 "));
  // A small one always has room, and the first ends as if nothing were.
  const auto small = begin(1000);
  small->write("x");
  EXPECT_TRUE(small->read_all().starts_with("HTTP/1.1 200 "));
  first->write("x");
  EXPECT_TRUE(first->read_all().starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(Bench::eventually([&] {
    return bench.server.counters().open == 0;
  }));
  const auto again = begin(250'000);
  again->write("x");
  EXPECT_TRUE(again->read_all().starts_with("HTTP/1.1 200 "));
}

TEST(HttpServer, AClientThatOnlyStopsSendingGetsItsAnswer) {
  Bench bench;
  TestClient whole(bench.server.port()), pieces(bench.server.port());
  whole.write(closing_request("GET", "/hold"));
  const auto first = bench.wait_for_held();
  ASSERT_NE(first, nullptr);
  whole.stop_sending();
  pieces.write(closing_request("GET", "/hold"));
  EXPECT_TRUE(Bench::eventually([&] {
    const std::lock_guard lock(bench.mutex);
    return bench.held.size() == 2;
  }));
  const auto second = bench.wait_for_held();
  second->begin({200, {}, {}}, ":\n\n");
  EXPECT_TRUE(pieces.read_until("\r\n\r\n"));
  pieces.stop_sending();
  // It is asked whether it still reads, in a way that means nothing.
  EXPECT_TRUE(whole.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_TRUE(pieces.read_until("3\r\n:\n\n\r\n"));
  EXPECT_EQ(bench.gone, 0);
  first->send({200, {}, "done"});
  second->write("data");
  second->end();
  EXPECT_TRUE(whole.read_all().ends_with("done"));
  EXPECT_TRUE(pieces.read_all().ends_with("4\r\ndata\r\n0\r\n\r\n"));
}

TEST(HttpServer, AClientThatSentMuchAheadIsSeenToLeave) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_NE(bench.wait_for_held(), nullptr);
  client.write(std::string(200'000, 'G'));
  EXPECT_TRUE(Bench::eventually([&] {
    return bench.server.counters().bytes_in > 64'000;
  }));
  client.hang_up();
  EXPECT_TRUE(Bench::eventually([&] { return bench.gone == 1; }));
  // One that stays gets the answer it waits for, and no other.
  TestClient stays(bench.server.port());
  stays.write("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(Bench::eventually([&] {
    const std::lock_guard lock(bench.mutex);
    return bench.held.size() == 2;
  }));
  stays.write(std::string(200'000, 'G'));
  EXPECT_TRUE(Bench::eventually([&] {
    return bench.server.counters().bytes_in > 300'000;
  }));
  bench.wait_for_held()->send({200, {}, "done"});
  EXPECT_TRUE(stays.read_all().ends_with("done"));
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

TEST(HttpServer, StopLetsAnswersEndAndStillAnswersWhoComes) {
  Bench bench(with_gate());
  const int port = bench.server.port();
  TestClient client(port), idle(port);
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  std::size_t left = 99;
  std::thread stopping([&] { left = bench.server.stop(milliseconds(60'000)); });
  // The gate is asked until the last answer has ended, and each answer then
  // ends its connection.
  std::string got;
  for (int i = 0; i < 1000 && got.find("Connection: close") == got.npos; ++i) {
    TestClient late(port);
    late.write("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(late.read_until("quick"));
    got = late.got;
  }
  EXPECT_NE(got.find("Connection: close"), got.npos);
  idle.write("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(idle.read_all().ends_with("quick"));
  reply->send({200, {}, "done"});
  stopping.join();
  EXPECT_EQ(left, 0U);
  EXPECT_TRUE(client.read_all().ends_with("done"));
}

TEST(HttpServer, StopEndsWhatDoesNotEnd) {
  Bench bench;
  TestClient client(bench.server.port());
  client.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  EXPECT_EQ(bench.server.drain(milliseconds(50)), 1U);
  EXPECT_EQ(bench.gone, 0);
  EXPECT_EQ(bench.server.stop(milliseconds(0)), 1U);
  EXPECT_EQ(bench.gone, 1);
  reply->send({200, {}, "nobody hears"});
}

TEST(HttpServer, AnIdleConnectionMakesRoomAndABusyOneDoesNot) {
  HttpServerOptions options = with_gate();
  options.max_connections = 2;
  Bench bench(options);
  TestClient idle(bench.server.port()), busy(bench.server.port());
  busy.write(closing_request("GET", "/hold"));
  const auto reply = bench.wait_for_held();
  ASSERT_NE(reply, nullptr);
  TestClient next(bench.server.port());
  next.write(closing_request("GET", "/hold"));
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(Bench::eventually([&] {
    const std::lock_guard lock(bench.mutex);
    return bench.held.size() == 2;
  }));
  EXPECT_EQ(bench.server.counters().dropped, 1U);
  TestClient refused(bench.server.port());
  EXPECT_TRUE(refused.read_all().starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(bench.server.counters().refused, 1U);
  reply->send({200, {}, "done"});
  EXPECT_TRUE(busy.read_all().ends_with("done"));
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
  EXPECT_EQ(address_of_host("localhost"), "127.0.0.1");
  EXPECT_EQ(address_of_host("::1"), "::1");
  EXPECT_THROW(address_of_host("example.org"), UsageError);
  EXPECT_TRUE(is_address("10.0.0.1"));
  EXPECT_FALSE(is_address("10.0.0.1.evil.example"));
}

}  // namespace
}  // namespace hearth::serve
