// The client against a server of a few lines that says what a test wants.
#include "hearth/net/http_client.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace hearth::net {
namespace {

// Takes connections one after the other; `answer` talks to each.
class Server {
 public:
  using Answer = std::function<void(int connection, const std::string& head)>;
  explicit Server(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, any, size) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("no loopback");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  int port() const { return port_; }
  Url url(const std::string& path = "/x") const {
    return parse_url(
        "http://127.0.0.1:" + std::to_string(port_) + path, "a test"
    );
  }

  static void say(int connection, const std::string& text) {
    (void)send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }
  static std::string hear(int connection, std::size_t bytes) {
    std::string out;
    char c = 0;
    while (out.size() < bytes && recv(connection, &c, 1, 0) == 1) out += c;
    return out;
  }

 private:
  void serve() {
    while (true) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      std::string head;
      char c = 0;
      while (!head.ends_with("\r\n\r\n") && recv(connection, &c, 1, 0) == 1) {
        head += c;
      }
      answer_(connection, head);
      ::close(connection);
    }
  }

  Answer answer_;
  int listener_ = -1, port_ = 0;
  std::thread thread_;
};

struct Got {
  HttpHead head;
  std::string body;
};

Got fetch(const HttpRequest& request, const HttpLimits& limits = {}) {
  Got out;
  HttpReceiver receiver;
  receiver.body = [&](std::string_view bytes) {
    out.body += bytes;
    return true;
  };
  out.head = http_fetch(request, limits, receiver);
  return out;
}

std::string answer_of(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nX-Kind:  a test \r\n\r\n" + body;
}

TEST(HttpFetch, AsksAndReceives) {
  std::string asked;
  Server server([&](int connection, const std::string& head) {
    asked = head;
    Server::say(connection, "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n");
    Server::say(connection, answer_of("hello"));
  });
  HttpRequest request{.url = server.url("/a/../b?c=%2F")};
  request.headers.emplace_back("Range", "bytes=5-");
  const Got got = fetch(request);
  EXPECT_EQ(got.head.status, 200);
  EXPECT_EQ(got.head.find("x-kind"), "a test");
  EXPECT_EQ(got.body, "hello");
  EXPECT_TRUE(asked.starts_with("GET /a/../b?c=%2F HTTP/1.1\r\n")) << asked;
  EXPECT_NE(asked.find("Range: bytes=5-\r\n"), asked.npos);
  EXPECT_EQ(asked.find("Accept-Encoding"), asked.npos);
}

TEST(HttpFetch, PostsABody) {
  std::string asked, heard;
  Server server([&](int connection, const std::string& head) {
    asked = head;
    heard = Server::hear(connection, 5);
    Server::say(connection, answer_of("done"));
  });
  HttpRequest request{.url = server.url()};
  request.post = std::string("a\0b\nc", 5);
  request.headers.emplace_back("Content-Type", "application/json");
  EXPECT_EQ(fetch(request).body, "done");
  EXPECT_EQ(heard, *request.post);
  EXPECT_TRUE(asked.starts_with("POST /x HTTP/1.1\r\n"));
  EXPECT_NE(asked.find("Content-Length: 5\r\n"), asked.npos);
  EXPECT_NE(asked.find("Content-Type: application/json\r\n"), asked.npos);
  EXPECT_EQ(asked.find("Expect"), asked.npos);
}

TEST(HttpFetch, HandsPiecesOverAsTheyCome) {
  std::atomic<bool> first_seen = false;
  Server server([&](int connection, const std::string&) {
    Server::say(
        connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    );
    Server::say(connection, "\r\n3\r\none\r\n");
    // The rest comes only once the first piece has been handed over.
    for (int i = 0; i < 1000 && !first_seen; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Server::say(connection, first_seen ? "3\r\ntwo\r\n0\r\n\r\n" : "bad");
  });
  std::string body;
  HttpReceiver receiver;
  receiver.body = [&](std::string_view bytes) {
    body += bytes;
    first_seen = true;
    return true;
  };
  http_fetch({.url = server.url()}, {}, receiver);
  EXPECT_EQ(body, "onetwo");
}

TEST(HttpFetch, StopsWhenToldTo) {
  Server server([](int connection, const std::string&) {
    Server::say(connection, answer_of(std::string(100'000, 'x')));
  });
  HttpReceiver receiver;
  receiver.head = [](const HttpHead&) { return false; };
  receiver.body = [](std::string_view) -> bool { throw Error("a body came"); };
  EXPECT_EQ(http_fetch({.url = server.url()}, {}, receiver).status, 200);
  receiver.head = [](const HttpHead&) { return true; };
  EXPECT_THROW(http_fetch({.url = server.url()}, {}, receiver), Error);
  receiver.body = [](std::string_view) { return false; };
  EXPECT_NO_THROW(http_fetch({.url = server.url()}, {}, receiver));
}

TEST(HttpFetch, CanBeGivenUp) {
  std::atomic<bool> over = false;
  Server server([&](int, const std::string&) {
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  int checks = 0;
  HttpReceiver receiver;
  receiver.check = [&] {
    if (++checks == 3) throw std::runtime_error("enough");
  };
  try {
    http_fetch({.url = server.url()}, {}, receiver);
    ADD_FAILURE() << "it went on";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "enough");
  }
  over = true;
}

TEST(HttpFetch, LimitsWhatAServerCanStretch) {
  enum class Kind { silent, dripping, endless_head, short_body, no_http };
  const auto why = [](Kind kind) -> std::string {
    std::atomic<bool> over = false;
    Server server([&](int connection, const std::string&) {
      if (kind == Kind::no_http) Server::say(connection, "SSH-2.0-x\r\n\r\n");
      if (kind == Kind::short_body) {
        Server::say(
            connection, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"
        );
      }
      if (kind == Kind::endless_head) {
        Server::say(connection, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 2000; ++i) {
          Server::say(connection, "A: " + std::string(100, 'b') + "\r\n");
        }
      }
      if (kind == Kind::dripping) {
        Server::say(connection, "HTTP/1.1 200 OK\r\n\r\n");
      }
      while ((kind == Kind::dripping || kind == Kind::silent) && !over) {
        if (kind == Kind::dripping) Server::say(connection, "x");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
    HttpLimits limits;
    limits.idle_seconds = 0.3;
    limits.slow_seconds = 0.6;
    std::string text = "nothing";
    try {
      fetch({.url = server.url()}, limits);
    } catch (const NetworkError& e) {
      text = std::string("network: ") + e.what();
    } catch (const FormatError& e) {
      text = std::string("format: ") + e.what();
    }
    over = true;
    return text;
  };
  EXPECT_TRUE(why(Kind::silent).starts_with("network: it sent nothing"));
  EXPECT_NE(why(Kind::dripping).find("too slow"), std::string::npos);
  EXPECT_EQ(
      why(Kind::endless_head), "format: the answer's headers are too large"
  );
  EXPECT_EQ(why(Kind::short_body), "network: it broke off before the end");
  EXPECT_TRUE(why(Kind::no_http).starts_with("format: the answer is not HTTP"));
}

TEST(HttpFetch, SaysThatNobodyListens) {
  int port = 0;
  {
    const Server gone([](int, const std::string&) {});
    port = gone.port();
  }
  const Url url =
      parse_url("http://127.0.0.1:" + std::to_string(port), "a test");
  try {
    fetch({.url = url});
    ADD_FAILURE() << "somebody answered";
  } catch (const NetworkError& e) {
    EXPECT_STREQ(e.what(), "cannot connect: Connection refused");
  }
}

// Other hosts are reached through the environment's proxy, this machine never
// is.
TEST(HttpFetch, TakesTheEnvironmentsProxy) {
  std::string asked;
  Server proxy([&](int connection, const std::string& head) {
    asked = head;
    Server::say(connection, answer_of("through"));
  });
  Server own([&](int connection, const std::string&) {
    Server::say(connection, answer_of("direct"));
  });
  const std::string address =
      "http://127.0.0.1:" + std::to_string(proxy.port());
  setenv("http_proxy", address.c_str(), 1);
  const Got far =
      fetch({.url = parse_url("http://model.example/a?b", "a test")});
  const Got near = fetch({.url = own.url()});
  unsetenv("http_proxy");
  EXPECT_EQ(far.body, "through");
  EXPECT_TRUE(asked.starts_with("GET http://model.example/a?b HTTP/1.1\r\n"));
  EXPECT_EQ(near.body, "direct");
}

}  // namespace
}  // namespace hearth::net
