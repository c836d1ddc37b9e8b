#pragma once
// An HTTP/1.1 server: one loop moves the bytes of all connections, a few
// workers run the handler, and answers may be written from any thread. Knows
// nothing of what is served.
//
// Our own because cpp-httplib 0.11.4 (Debian 12's) gives each connection a
// thread for as long as it lasts, does not bound chunked bodies or the number
// of headers, has no deadline for a whole request, listens with a backlog of
// five, and notices a client that left only when it writes.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hearth/base/worker_queue.h"
#include "hearth/serve/http/http_parser.h"
#include "hearth/serve/http/http_reply.h"

namespace hearth::serve {

// Called on a worker, for requests that the gate let pass. The reply may be
// kept and written later, by any thread; one that is dropped without an answer
// is a bug, and answered with 500.
using HttpHandler = std::function<
    void(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply)>;

// A handler throws this, before it has done anything, when the request is more
// than a little work.
struct TakesLong {};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address, not a name
  int port = 0;                    // 0: one the system chooses
  HttpLimits limits;
  std::size_t max_connections = 512;
  // Requests of one owner that are begun and not ended: the oldest of more go.
  // Until their heads are there they are of their address. A body counts once
  // nothing of it came for so long.
  std::size_t max_unfinished = 64;
  std::chrono::milliseconds stall{1'000};
  std::size_t max_waiting = std::size_t{256} << 10;  // bytes a client may owe
  // Bytes of all bodies; a quarter of it, or one of the largest, of one owner.
  std::size_t max_bodies = std::size_t{128} << 20;
  int workers = 2, slow_workers = 2;
  // A larger body is for the slow workers from the start.
  std::size_t quick_body = std::size_t{256} << 10;
  // Called on the slow workers for what the handler found to take long; without
  // it there are none.
  HttpHandler slow_handler;
  // Whose the request is: the requests of one do not delay those of others.
  // Its address, where nothing is said.
  std::function<std::string(const HttpRequest&)> owner;
  // How long a request may take to arrive whole, a connection may stay idle,
  // and a client may take to read any byte that waits for it.
  std::chrono::milliseconds head_timeout{10'000}, body_timeout{30'000},
      idle_timeout{60'000}, write_timeout{20'000};
  // Bytes a second that a client must take, on average over this time, while
  // more waits for it.
  std::size_t least_rate = 4096;
  std::chrono::milliseconds rate_window{30'000};
  // The least bytes per second of a body that the client sends.
  std::size_t least_body_rate = 4096;
  std::chrono::milliseconds body_rate_window{10'000};
  // An answer that has nothing to say for so long says that it is still there.
  std::chrono::milliseconds quiet_after{15'000};
  // Asked on the loop's thread when the head of a request is there: an answer
  // ends the request before its body is read. Must be quick and not throw.
  std::function<std::optional<HttpAnswer>(const HttpRequest& head)> gate;
  // The body and headers of an answer to a request that cannot be read, or for
  // which there is no room.
  std::function<HttpAnswer(const HttpFault&)> fault_answer;
};

struct HttpCounters {
  std::atomic<std::uint64_t> accepted{0}, refused{0}, dropped{0}, faults{0},
      left{0}, too_slow{0}, timed_out{0}, partial{0}, bytes_in{0}, bytes_out{0};
  std::atomic<std::size_t> open{0};
};

class HttpServer {
 public:
  // Listens; connections wait until start(). Throws UsageError for an address
  // that is none, IoError when it cannot be had.
  HttpServer(const HttpServerOptions& options, HttpHandler handler);
  // Closes everything at once.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  void start();
  // From now on each answer ends its connection. Waits until no answer is under
  // way, but at most that long, and returns how many still are; new connections
  // are accepted, so that the gate can turn them away.
  std::size_t drain(std::chrono::milliseconds patience);
  // Drains, then closes everything. What drain() says.
  std::size_t stop(std::chrono::milliseconds patience);

  const HttpCounters& counters() const;
  // What the workers do; may be asked from any thread while the server is
  // there.
  struct Workers {
    WorkerQueue::State quick, slow;
  };
  Workers workers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::serve
