#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "hearth/hub/socket_impl.h"

namespace hearth::hub {
namespace {

constexpr int kSliceMilliseconds = 100;

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SO_NOSIGPIPE does it
#endif

void set_options(int descriptor) {
  const int on = 1;
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#ifdef SO_NOSIGPIPE
  setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

std::string error_text(int code) {
  return std::error_code(code, std::generic_category()).message();
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const Url& url) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  const std::string port = std::to_string(url.port);
  // Loopback addresses are there even where no network is.
  if (url.is_loopback()) hints.ai_flags = 0;
  const int code = getaddrinfo(url.host.c_str(), port.c_str(), &hints, &list);
  if (code == 0) return Addresses(list);
  throw NetworkError(
      fmt::format("the host was not found: {}", gai_strerror(code))
  );
}

}  // namespace

Socket::Socket(const Url& url, const Waiting& waiting) : waiting_(waiting) {
  const Addresses addresses = look_up(url);
  std::string why = "no address";
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    try {
      if (try_connect(*a)) return;
      why = error_text(errno);
    } catch (const NetworkError& e) {
      why = e.what();
    }
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  throw NetworkError("cannot connect: " + why);
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      waiting_(std::move(other.waiting_)) {}

// False with errno set.
bool Socket::try_connect(const addrinfo& address) {
  descriptor_ =
      ::socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (descriptor_ < 0) return false;
  set_options(descriptor_);
  if (connect(descriptor_, address.ai_addr, address.ai_addrlen) == 0) {
    return true;
  }
  if (errno != EINPROGRESS) return false;
  wait_for(POLLOUT, waiting_.connect_seconds, "it did not answer");
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

void Socket::wait_for(short events, double seconds, const char* what) const {
  const auto now = std::chrono::steady_clock::now;
  const auto start = now();
  while (true) {
    waiting_.check();
    pollfd one{descriptor_, events, 0};
    const int ready = poll(&one, 1, kSliceMilliseconds);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) {
      throw NetworkError(error_text(errno));
    }
    const std::chrono::duration<double> waited = now() - start;
    if (waited.count() >= seconds) {
      throw NetworkError(fmt::format("{} for {:.0f} s", what, seconds));
    }
  }
}

void Socket::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(descriptor_, bytes.data(), bytes.size(), kNoSignal);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLOUT, waiting_.idle_seconds, "it took nothing");
    } else if (errno != EINTR) {
      throw NetworkError(error_text(errno));
    }
  }
}

std::size_t Socket::read(std::span<char> out) {
  while (true) {
    waiting_.check();
    const ssize_t n = recv(descriptor_, out.data(), out.size(), 0);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLIN, waiting_.idle_seconds, "it sent nothing");
    } else if (errno != EINTR) {
      throw NetworkError(error_text(errno));
    }
  }
}

}  // namespace hearth::hub
