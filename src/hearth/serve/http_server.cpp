#include "hearth/serve/http_server.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/serve/http_connection_impl.h"
#include "hearth/serve/listen_socket.h"
#include "hearth/serve/wakeup.h"
#include "hearth/serve/worker_queue.h"

namespace hearth::serve {
namespace {

// How often the clock is looked at when nothing happens.
constexpr int kTickMs = 100;

}  // namespace

struct HttpServer::State {
  State(const HttpServerOptions& o, HttpHandler h)
      : options(o),
        handler(std::move(h)),
        bodies{.most = o.max_bodies},
        host{
            options, counters, bodies,
            [this](
                HttpRequest request,
                BodyShare body,
                const std::shared_ptr<HttpReply>& reply
            ) { submit(std::move(request), std::move(body), reply); },
            [w = wakeup] { w->call(); }
        } {
    listening = listen_on(options.host, options.port);
  }
  ~State() {
    if (listening.fd >= 0) close(listening.fd);
  }

  void submit(
      HttpRequest request,
      BodyShare body,
      const std::shared_ptr<HttpReply>& reply
  );
  void loop();
  void accept_all(Clock::time_point now);
  void take(int fd, Clock::time_point now);
  bool drop_spare();
  void poll_once();
  void serve_events(Clock::time_point now);
  void tell_round();

  const HttpServerOptions options;
  const HttpHandler handler;
  HttpCounters counters;
  BodyBudget bodies;
  // Replies may outlive the server, and still call.
  const std::shared_ptr<Wakeup> wakeup = std::make_shared<Wakeup>();
  HttpConnection::Host host;
  ListenSocket listening;
  std::vector<std::unique_ptr<HttpConnection>> connections;
  std::vector<pollfd> polled;
  bool accepts = true;            // in this round
  Clock::time_point accept_from;  // not before: the system has no more files
  std::unique_ptr<WorkerQueue> workers;
  std::thread thread;
  std::atomic<bool> draining{false}, stopping{false};
  // What drain() waits for.
  std::mutex mutex;
  std::condition_variable round_ended;
  std::uint64_t rounds = 0;
  std::size_t busy = 0;
};

void HttpServer::State::submit(
    HttpRequest request,
    BodyShare body,
    const std::shared_ptr<HttpReply>& reply
) {
  // std::function wants to copy what it holds.
  struct Held {
    HttpRequest request;
    BodyShare body;
    std::shared_ptr<HttpReply> reply;
  };
  auto held =
      std::make_shared<Held>(std::move(request), std::move(body), reply);
  workers->push([this, held]() mutable {
    try {
      handler(std::move(held->request), held->reply);
    } catch (const std::exception& e) {
      log_warning("a request failed: {}", e.what());
      held->reply->send({500, {}, {}});
    }
    held.reset();
    wakeup->call();
  });
}

// The connection that has asked nothing for longest goes.
bool HttpServer::State::drop_spare() {
  HttpConnection* oldest = nullptr;
  for (const auto& c : connections) {
    if (!c->spare()) continue;
    if (!oldest || c->idle_since() < oldest->idle_since()) oldest = c.get();
  }
  if (oldest == nullptr) return false;
  ++counters.dropped;
  std::erase_if(connections, [&](const auto& c) { return c.get() == oldest; });
  return true;
}

void HttpServer::State::take(int fd, Clock::time_point now) {
  // Those that are told so need a place for the time it takes.
  const std::size_t most = options.max_connections;
  const bool full = connections.size() >= most && !drop_spare();
  if (full) ++counters.refused;
  if (connections.size() >= most + most / 8 + 8) {
    close(fd);
    return;
  }
  auto made = std::make_unique<HttpConnection>(fd, host, now);
  if (full && !made->refuse({503, "too many connections"}, now)) return;
  connections.push_back(std::move(made));
}

void HttpServer::State::accept_all(Clock::time_point now) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  for (;;) {
    const int fd = accept(listening.fd, nullptr, nullptr);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // No file descriptors or memory: the connection stays in the queue.
      if (!drop_spare()) accept_from = now + kPause;
      return;
    }
    ++counters.accepted;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    take(fd, now);
  }
}

void HttpServer::State::poll_once() {
  polled.clear();
  polled.push_back({wakeup->fd(), POLLIN, 0});
  int patience = kTickMs;
  for (const auto& c : connections) {
    short events = 0;
    if (c->wants_read()) events |= POLLIN;
    if (c->wants_write()) events |= POLLOUT;
    if (c->hurries()) patience = 0;
    polled.push_back({c->fd(), events, 0});
  }
  accepts = Clock::now() >= accept_from;
  if (accepts) polled.push_back({listening.fd, POLLIN, 0});
  poll(polled.data(), polled.size(), patience);
  if (polled[0].revents != 0) wakeup->answer();
}

void HttpServer::State::serve_events(Clock::time_point now) {
  for (std::size_t i = 0; i < connections.size(); ++i) {
    HttpConnection& c = *connections[i];
    const short events = polled[i + 1].revents;
    bool goes_on = (events & (POLLERR | POLLNVAL)) == 0;
    if (goes_on && (events & (POLLIN | POLLHUP)) != 0) {
      goes_on = c.on_readable(now);
    }
    if (goes_on && (events & POLLOUT) != 0) goes_on = c.on_writable(now);
    goes_on = goes_on && c.tick(now);
    if (!goes_on) connections[i].reset();
  }
  std::erase(connections, nullptr);
}

void HttpServer::State::tell_round() {
  const auto under_way = std::ranges::count_if(connections, [](const auto& c) {
    return c->busy();
  });
  {
    const std::lock_guard lock(mutex);
    busy = static_cast<std::size_t>(under_way);
    ++rounds;
  }
  round_ended.notify_all();
}

void HttpServer::State::loop() {
  while (!stopping) {
    poll_once();
    const auto now = Clock::now();
    host.stopping = draining;
    serve_events(now);
    if (accepts && polled.back().revents != 0) accept_all(now);
    if (draining) tell_round();
  }
  connections.clear();
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler)
    : state_(std::make_unique<State>(options, std::move(handler))) {}

HttpServer::~HttpServer() {
  stop(std::chrono::milliseconds(0));
}

int HttpServer::port() const {
  return state_->listening.port;
}

const HttpCounters& HttpServer::counters() const {
  return state_->counters;
}

void HttpServer::start() {
  state_->workers = std::make_unique<WorkerQueue>(state_->options.workers);
  state_->thread = std::thread([this] { state_->loop(); });
}

std::size_t HttpServer::drain(std::chrono::milliseconds patience) {
  State& s = *state_;
  if (!s.thread.joinable()) return 0;
  const auto until = Clock::now() + patience;
  std::unique_lock lock(s.mutex);
  s.draining = true;
  // The round under way may have begun before.
  const auto first = s.rounds + 2;
  while (s.rounds < first || (s.busy > 0 && Clock::now() < until)) {
    s.wakeup->call();
    s.round_ended.wait_for(lock, std::chrono::milliseconds(kTickMs));
  }
  return s.busy;
}

std::size_t HttpServer::stop(std::chrono::milliseconds patience) {
  State& s = *state_;
  if (!s.thread.joinable()) return 0;
  const std::size_t left = drain(patience);
  s.stopping = true;
  s.wakeup->call();
  s.thread.join();
  s.workers.reset();
  return left;
}

}  // namespace hearth::serve
