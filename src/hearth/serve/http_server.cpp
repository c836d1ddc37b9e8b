#include "hearth/serve/http_server.h"

#include <algorithm>
#include <cerrno>
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
        host{
            options, counters,
            [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
              submit(std::move(request), std::move(reply));
            },
            [w = wakeup] { w->call(); }
        } {
    listening = listen_on(options.host, options.port);
  }
  ~State() {
    if (listening.fd >= 0) close(listening.fd);
  }

  void submit(HttpRequest request, std::shared_ptr<HttpReply> reply);
  void loop();
  void accept_all(Clock::time_point now);
  void poll_once();
  void serve_events(Clock::time_point now);

  const HttpServerOptions options;
  const HttpHandler handler;
  HttpCounters counters;
  // Replies may outlive the server, and still call.
  const std::shared_ptr<Wakeup> wakeup = std::make_shared<Wakeup>();
  HttpConnection::Host host;
  ListenSocket listening;
  std::vector<std::unique_ptr<HttpConnection>> connections;
  std::vector<pollfd> polled;
  std::unique_ptr<WorkerQueue> workers;
  std::thread thread;
  std::atomic<bool> stopping{false};
  std::atomic<Clock::rep> stop_at{0};
  bool all_ended = true;
};

void HttpServer::State::submit(
    HttpRequest request,
    std::shared_ptr<HttpReply> reply
) {
  // std::function wants to copy what it holds.
  auto shared = std::make_shared<HttpRequest>(std::move(request));
  workers->push([this, shared, reply = std::move(reply)]() mutable {
    try {
      handler(std::move(*shared), reply);
    } catch (const std::exception& e) {
      log_warning("a request failed: {}", e.what());
      reply->send({500, {}, {}});
    }
    reply.reset();
    wakeup->call();
  });
}

void HttpServer::State::accept_all(Clock::time_point now) {
  for (;;) {
    const int fd = accept(listening.fd, nullptr, nullptr);
    if (fd < 0) return;
    ++counters.accepted;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (connections.size() >= options.max_connections) {
      ++counters.refused;
      close(fd);
      continue;
    }
    connections.push_back(std::make_unique<HttpConnection>(fd, host, now));
  }
}

void HttpServer::State::poll_once() {
  polled.clear();
  polled.push_back({wakeup->fd(), POLLIN, 0});
  for (const auto& c : connections) {
    short events = 0;
    if (c->wants_read()) events |= POLLIN;
    if (c->wants_write()) events |= POLLOUT;
    polled.push_back({c->fd(), events, 0});
  }
  const bool accepts = !stopping && listening.fd >= 0;
  if (accepts) polled.push_back({listening.fd, POLLIN, 0});
  poll(polled.data(), polled.size(), kTickMs);
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
    goes_on = goes_on && c.tick(now, stopping);
    if (!goes_on) connections[i].reset();
  }
  std::erase(connections, nullptr);
}

void HttpServer::State::loop() {
  for (;;) {
    poll_once();
    const auto now = Clock::now();
    const bool accepts = polled.size() > connections.size() + 1;
    serve_events(now);
    if (accepts && polled.back().revents != 0) accept_all(now);
    if (!stopping) continue;
    if (listening.fd >= 0) close(std::exchange(listening.fd, -1));
    const bool late = now.time_since_epoch().count() >= stop_at;
    if (connections.empty() || late) break;
  }
  all_ended = std::ranges::none_of(connections, [](const auto& c) {
    return c->busy();
  });
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

bool HttpServer::stop(std::chrono::milliseconds patience) {
  if (!state_->thread.joinable()) return true;
  state_->stop_at = (Clock::now() + patience).time_since_epoch().count();
  state_->stopping = true;
  state_->wakeup->call();
  state_->thread.join();
  state_->workers.reset();
  return state_->all_ended;
}

}  // namespace hearth::serve
