// What one client may take from the others: workers, connections, patience.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/serve/http/http_server.h"
#include "hearth/serve/http/test_client_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

bool eventually(const std::function<bool()>& what) {
  for (int i = 0; i < 5000 && !what(); ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return what();
}

std::string asks(std::string_view path, std::string_view owner = "a") {
  return closing_request(
      "GET", path, {}, "X-Owner: " + std::string(owner) + "\r\n"
  );
}

// /long waits on a slow worker until it is let go; all else is answered.
struct Pools {
  Pools()
      : server(options(), [](const HttpRequest& request, const auto& reply) {
          if (request.path == "/long") throw TakesLong();
          reply->send({200, {}, "quick"});
        }) {
    server.start();
  }
  HttpServerOptions options() {
    HttpServerOptions out;
    out.workers = 1;
    out.quick_body = 1000;
    out.owner = [](const HttpRequest& request) {
      return *request.header("X-Owner");
    };
    out.slow_handler = [this](const HttpRequest& request, const auto& reply) {
      while (!go && *request.header("X-Owner") != "b") {
        std::this_thread::sleep_for(milliseconds(1));
      }
      reply->send({200, {}, "slow " + request.path});
    };
    return out;
  }
  std::atomic<bool> go{false};
  HttpServer server;
};

TEST(HttpFairness, WhatTakesLongDelaysNobodyElse) {
  Pools pools;
  std::vector<std::unique_ptr<TestClient>> hostile;
  for (int i = 0; i < 4; ++i) {
    hostile.push_back(std::make_unique<TestClient>(pools.server.port()));
    hostile.back()->write(asks("/long"));
  }
  ASSERT_TRUE(eventually([&] {
    return pools.server.workers().slow.waiting == 3;
  }));
  TestClient quick(pools.server.port());
  quick.write(asks("/quick"));
  EXPECT_TRUE(quick.read_all().ends_with("quick"));
  // Somebody else's that takes long finds a worker too.
  TestClient other(pools.server.port());
  other.write(asks("/long", "b"));
  EXPECT_TRUE(other.read_all().ends_with("slow /long"));
  // Its worker is free again a moment after its answer is there.
  EXPECT_TRUE(eventually([&] {
    return pools.server.workers().slow.busy == 1;
  }));
  pools.go = true;
  for (auto& client : hostile) {
    EXPECT_TRUE(client->read_all().ends_with("slow /long"));
  }
}

TEST(HttpFairness, ALargeBodyIsForTheSlowWorkers) {
  Pools pools;
  TestClient client(pools.server.port());
  client.write(
      closing_request("POST", "/x", std::string(1001, 'x'), "X-Owner: b\r\n")
  );
  EXPECT_TRUE(client.read_all().ends_with("slow /x"));
}

TEST(HttpFairness, AnAnswerIsMadeAsItIsTaken) {
  constexpr int kPieces = 400;
  constexpr std::size_t kPiece = 40'000;
  std::atomic<int> made{0};
  HttpServer server({}, [&](const HttpRequest&, const auto& reply) {
    reply->draw({200, {}, {}}, [&](std::string& out) {
      out.append(kPiece, 'x');
      return ++made < kPieces;
    });
  });
  server.start();
  TestClient client(server.port(), 4096);
  client.write(closing_request("GET", "/"));
  ASSERT_TRUE(client.read_until("x"));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(made, 20);  // what sockets hold
  const std::string got = client.read_all();
  EXPECT_EQ(made, kPieces);
  EXPECT_EQ(
      static_cast<std::size_t>(std::ranges::count(got, 'x')), kPieces * kPiece
  );
  EXPECT_TRUE(got.ends_with("\r\n0\r\n\r\n"));
}

TEST(HttpFairness, AClientThatTakesABitNowAndThenIsLetGo) {
  HttpServerOptions options;
  options.least_rate = std::size_t{64} << 20;
  options.rate_window = milliseconds(300);
  std::atomic<int> gone{0};
  std::shared_ptr<HttpReply> held;
  HttpServer server(options, [&](const HttpRequest&, const auto& reply) {
    held = reply;
    reply->on_gone([&] { ++gone; });
    reply->begin({200, {}, {}});
    reply->write(std::string(std::size_t{8} << 20, 'x'));
  });
  server.start();
  TestClient slow(server.port(), 4096);
  slow.write(closing_request("GET", "/"));
  EXPECT_TRUE(eventually([&] {
    slow.read(1);
    return gone == 1;
  }));
  EXPECT_EQ(server.counters().too_slow, 1U);
}

TEST(HttpFairness, BeginningsOfRequestsAreBoundedForEachAddress) {
  HttpServerOptions options;
  options.max_connections = 16;  // four of them
  HttpServer server(options, [](const HttpRequest&, const auto& reply) {
    reply->send({200, {}, "answered"});
  });
  server.start();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->write("GET / HTTP/1.1\r\nHost: localhost\r\n");
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_TRUE(eventually([&] { return server.counters().partial == 8; }));
  TestClient whole(server.port());
  whole.write(closing_request("GET", "/"));
  EXPECT_TRUE(whole.read_all().ends_with("answered"));
  // The oldest had to go.
  EXPECT_FALSE(clients.front()->read());
  clients.back()->write("Connection: close\r\n\r\n");
  EXPECT_TRUE(clients.back()->read_all().ends_with("answered"));
  EXPECT_EQ(server.counters().partial, 8U);
}

HttpServerOptions with_owners() {
  HttpServerOptions out;
  out.owner = [](const HttpRequest& request) {
    return *request.header("X-Owner");
  };
  return out;
}

// A whole head, and of the body all but the last byte of so many.
std::unique_ptr<TestClient> begin_body(
    const HttpServer& server,
    std::string_view owner,
    std::size_t size = 1
) {
  auto client = std::make_unique<TestClient>(server.port());
  client->write(
      "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Owner: " +
      std::string(owner) + "\r\nContent-Length: " + std::to_string(size) +
      "\r\n\r\n" + std::string(size - 1, 'x')
  );
  return client;
}

// Answers everything that arrives.
void answered(const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
  reply->send({200, {}, "answered"});
}

TEST(HttpFairness, BodiesThatDoNotComeAreBoundedForEachOwner) {
  auto options = with_owners();
  options.max_connections = 16;  // four of them
  options.stall = milliseconds(300);
  HttpServer server(options, answered);
  server.start();
  const auto other = begin_body(server, "b");
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(begin_body(server, "a"));
  EXPECT_TRUE(eventually([&] { return server.counters().partial == 6; }));
  // Nobody else's goes for it, and who sends goes on to the end.
  other->write("x");
  EXPECT_TRUE(other->read_all().ends_with("answered"));
  int left = 0;
  for (auto& client : clients) {
    client->write("x");
    left += client->read_all().ends_with("answered") ? 1 : 0;
  }
  EXPECT_EQ(left, 4);
  EXPECT_EQ(server.counters().partial, 6U);
}

TEST(HttpFairness, BodiesThatDoNotComeMakeRoomForWhoeverComes) {
  auto options = with_owners();
  options.max_connections = 8;
  options.max_unfinished = 8;
  options.stall = std::chrono::hours(1);  // none goes before others need it
  HttpServer server(options, answered);
  server.start();
  const auto other = begin_body(server, "b");
  ASSERT_TRUE(eventually([&] { return server.counters().bytes_in > 0; }));
  std::vector<std::unique_ptr<TestClient>> hostile;
  for (int i = 0; i < 7; ++i) {
    const auto before = server.counters().bytes_in.load();
    hostile.push_back(begin_body(server, "a"));
    ASSERT_TRUE(eventually([&] {
      return server.counters().bytes_in > before;
    }));
  }
  // These come together: none of them makes room for another.
  std::vector<std::unique_ptr<TestClient>> honest;
  for (int i = 0; i < 4; ++i) {
    honest.push_back(std::make_unique<TestClient>(server.port()));
  }
  ASSERT_TRUE(eventually([&] { return server.counters().partial == 4; }));
  for (auto& client : honest) {
    client->write(asks("/", "c"));
    EXPECT_TRUE(client->read_all().ends_with("answered"));
  }
  // Of who has begun the most the oldest had to go.
  EXPECT_FALSE(hostile.front()->read());
  hostile.back()->write("x");
  EXPECT_TRUE(hostile.back()->read_all().ends_with("answered"));
  other->write("x");
  EXPECT_TRUE(other->read_all().ends_with("answered"));
  EXPECT_EQ(server.counters().refused, 0U);
}

TEST(HttpFairness, ABodyMustKeepComing) {
  auto options = with_owners();
  options.least_body_rate = std::size_t{1} << 20;
  options.body_rate_window = milliseconds(300);
  options.body_timeout = std::chrono::hours(1);
  HttpServer server(options, answered);
  server.start();
  const auto client = begin_body(server, "a", 1000);
  EXPECT_TRUE(client->read_all().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(server.counters().timed_out, 1U);
}

TEST(HttpFairness, BodiesOfOneOwnerLeaveRoomForThoseOfOthers) {
  auto options = with_owners();
  options.max_bodies = 1'200'000;  // of one owner 300'000
  options.limits.max_body = 300'000;
  HttpServer server(options, answered);
  server.start();
  // There is room for one of them.
  std::vector<std::unique_ptr<TestClient>> hostile;
  for (int i = 0; i < 5; ++i) {
    hostile.push_back(begin_body(server, "a", 250'000));
  }
  ASSERT_TRUE(eventually([&] { return server.counters().faults == 4; }));
  const auto other = begin_body(server, "b", 250'000);
  other->write("x");
  EXPECT_TRUE(other->read_all().ends_with("answered"));
  // What they held is given back.
  hostile.clear();
  ASSERT_TRUE(eventually([&] { return server.counters().open == 0; }));
  const auto again = begin_body(server, "a", 250'000);
  again->write("x");
  EXPECT_TRUE(again->read_all().ends_with("answered"));
}

TEST(HttpFairness, AStreamThatWaitsSaysThatItIsThere) {
  HttpServerOptions options;
  options.quiet_after = milliseconds(100);
  std::vector<std::shared_ptr<HttpReply>> held;
  HttpServer server(
      options, [&](const HttpRequest& request, const auto& reply) {
        const bool events = request.path == "/events";
        reply->begin({200, {}, {}}, events ? ": keep-alive\n\n" : "");
        held.push_back(reply);
      }
  );
  server.start();
  TestClient events(server.port());
  events.write(closing_request("GET", "/events"));
  EXPECT_TRUE(events.read_until(": keep-alive\n\n\r\n"));
  const auto first = events.got.size();
  EXPECT_TRUE(events.read());
  EXPECT_NE(events.got.find(": keep-alive", first), std::string::npos);
  held.front()->end();
  EXPECT_TRUE(events.read_all().ends_with("0\r\n\r\n"));
  TestClient plain(server.port());
  plain.write(closing_request("GET", "/plain"));
  ASSERT_TRUE(plain.read_until("\r\n\r\n"));
  EXPECT_FALSE(plain.read(300));
}

}  // namespace
}  // namespace hearth::serve
