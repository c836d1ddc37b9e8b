#include "hearth/serve/http/http_server.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
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
#include "hearth/serve/http/http_connection_impl.h"
#include "hearth/serve/http/listen_socket.h"
#include "hearth/serve/http/wakeup.h"

namespace hearth::serve {
namespace {

// How often the clock is looked at when nothing happens.
constexpr int kTickMs = 100;
// What the system may hold of an answer: with more, a client that does not
// read would seem to for long.
constexpr int kSendBuffer = 64 << 10;

}  // namespace

struct HttpServer::State {
  // A request on its way to a worker.
  struct Held {
    HttpRequest request;
    std::string owner;
    BodyShare body;
    std::shared_ptr<HttpReply> reply;
  };

  State(const HttpServerOptions& o, HttpHandler h)
      : options(o),
        handler(std::move(h)),
        bodies(o.max_bodies, std::max(o.max_bodies / 4, o.limits.max_body)),
        host{
            options, counters, bodies,
            [this](
                HttpRequest request,
                std::string owner,
                BodyShare body,
                std::shared_ptr<HttpReply> reply
            ) {
              submit(
                  std::make_shared<Held>(Held{
                      std::move(request), std::move(owner), std::move(body),
                      std::move(reply)
                  })
              );
            },
            [w = wakeup] { w->call(); }
        } {
    listening = listen_on(options.host, options.port);
  }
  ~State() {
    if (listening.fd >= 0) close(listening.fd);
  }

  void submit(const std::shared_ptr<Held>& held);
  void run_quick(const std::shared_ptr<Held>& held);
  void run(const HttpHandler& call, const std::shared_ptr<Held>& held);
  void loop();
  void accept_all(Clock::time_point now);
  void take(int fd, std::string peer, Clock::time_point now);
  bool drop_spare(Clock::time_point now, std::chrono::milliseconds at_least);
  void drop_unfinished(Clock::time_point now);
  bool drop_stalest();
  bool make_room(Clock::time_point now);
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
  std::unique_ptr<WorkerQueue> workers, slow_workers;
  std::thread thread;
  std::atomic<bool> draining{false}, stopping{false};
  // The state that drain() waits for.
  std::mutex mutex;
  std::condition_variable round_ended;
  std::uint64_t rounds = 0;
  std::size_t busy = 0;
};

void HttpServer::State::submit(const std::shared_ptr<Held>& held) {
  const bool large = held->request.body.size() > options.quick_body;
  if (large && slow_workers) {
    slow_workers->push(held->owner, [this, held] {
      run(options.slow_handler, held);
    });
  } else {
    workers->push(held->owner, [this, held] { run_quick(held); });
  }
}

void HttpServer::State::run_quick(const std::shared_ptr<Held>& held) {
  try {
    run(handler, held);
  } catch (const TakesLong&) {
    if (!slow_workers) return held->reply->send({500, {}, {}});
    slow_workers->push(held->owner, [this, held] {
      run(options.slow_handler, held);
    });
  }
}

// What was held goes with the last that holds it, on the worker's thread; the
// loop then sees what became of the reply.
void HttpServer::State::run(
    const HttpHandler& call,
    const std::shared_ptr<Held>& held
) {
  try {
    call(held->request, held->reply);
  } catch (const std::exception& e) {
    log_warning("a request failed: {}", e.what());
    held->reply->send({500, {}, {}});
  }
  held->reply.reset();
  held->body = BodyShare();
  wakeup->call();
}

// The connection that has asked nothing for longest goes, if that is so long.
bool HttpServer::State::drop_spare(
    Clock::time_point now,
    std::chrono::milliseconds at_least
) {
  HttpConnection* oldest = nullptr;
  for (const auto& c : connections) {
    if (!c->spare(now) || now - c->idle_since() < at_least) continue;
    if (!oldest || c->idle_since() < oldest->idle_since()) oldest = c.get();
  }
  if (oldest == nullptr) return false;
  ++counters.dropped;
  std::erase_if(connections, [&](const auto& c) { return c.get() == oldest; });
  return true;
}

// One owner may have a bounded number of requests begun and not completed: the
// oldest of them are dropped. Honest clients send a request in one go.
void HttpServer::State::drop_unfinished(Clock::time_point now) {
  const std::size_t most = std::clamp<std::size_t>(
      options.max_connections / 4, 1,
      std::max<std::size_t>(options.max_unfinished, 1)
  );
  std::map<std::string_view, std::vector<HttpConnection*>> by_owner;
  const auto waits = [&](const auto& c) {
    return c->unfinished() && !c->goes_on(now);
  };
  if (std::ranges::count_if(connections, waits) <=
      static_cast<std::ptrdiff_t>(most)) {
    return;
  }
  for (const auto& c : connections) {
    if (waits(c)) by_owner[c->owner()].push_back(c.get());
  }
  std::set<const HttpConnection*> gone;
  for (auto& [owner, list] : by_owner) {
    std::ranges::sort(list, {}, &HttpConnection::waits_since);
    for (std::size_t i = 0; i + most < list.size(); ++i) gone.insert(list[i]);
  }
  counters.partial += gone.size();
  std::erase_if(connections, [&](const auto& c) {
    return gone.contains(c.get());
  });
}

// Drops a connection of the owner with the most uncompleted requests: the one
// that was silent for longest.
bool HttpServer::State::drop_stalest() {
  struct Of {
    std::size_t count = 0;
    const HttpConnection* stalest = nullptr;
  };
  std::map<std::string_view, Of> by_owner;
  for (const auto& c : connections) {
    if (!c->unfinished()) continue;
    Of& of = by_owner[c->owner()];
    ++of.count;
    if (!of.stalest || c->waits_since() < of.stalest->waits_since()) {
      of.stalest = c.get();
    }
  }
  const auto largest = std::ranges::max_element(
      by_owner, {}, [](const auto& entry) { return entry.second.count; }
  );
  if (largest == by_owner.end()) return false;
  const HttpConnection* gone = largest->second.stalest;
  ++counters.partial;
  std::erase_if(connections, [&](const auto& c) { return c.get() == gone; });
  return true;
}

// A connection that has just opened may be about to send its request, so it is
// the last to be dropped.
bool HttpServer::State::make_room(Clock::time_point now) {
  return drop_spare(now, options.stall) || drop_stalest() ||
         drop_spare(now, std::chrono::milliseconds(0));
}

void HttpServer::State::take(int fd, std::string peer, Clock::time_point now) {
  // Clients that are told that the server is full need a connection for that
  // long.
  const std::size_t most = options.max_connections;
  while (connections.size() >= most && make_room(now)) continue;
  const bool full = connections.size() >= most;
  if (full) ++counters.refused;
  if (connections.size() >= most + most / 8 + 8) {
    close(fd);
    return;
  }
  auto made = std::make_unique<HttpConnection>(fd, std::move(peer), host, now);
  if (full && !made->refuse({503, "too many connections"}, now)) return;
  connections.push_back(std::move(made));
}

void HttpServer::State::accept_all(Clock::time_point now) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  for (;;) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const int fd =
        accept(listening.fd, reinterpret_cast<sockaddr*>(&from), &size);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // No file descriptors or memory: the connection stays in the queue.
      if (!make_room(now)) accept_from = now + kPause;
      return;
    }
    ++counters.accepted;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    take(fd, peer_name(from), now);
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
    drop_unfinished(now);
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

HttpServer::Workers HttpServer::workers() const {
  Workers out;
  if (state_->workers) out.quick = state_->workers->state();
  if (state_->slow_workers) out.slow = state_->slow_workers->state();
  return out;
}

void HttpServer::start() {
  State& s = *state_;
  if (s.options.slow_handler) {
    // One slow worker is kept spare, so that one owner cannot take all of them.
    s.slow_workers = std::make_unique<WorkerQueue>(
        s.options.slow_workers, WorkerQueue::Sharing::leave_one
    );
  }
  s.workers = std::make_unique<WorkerQueue>(s.options.workers);
  s.thread = std::thread([&s] { s.loop(); });
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
  // The quick ones may still hand something to the slow ones.
  s.workers->end();
  if (s.slow_workers) s.slow_workers->end();
  return left;
}

}  // namespace hearth::serve
