#include "hearth/serve/http/listen_socket.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "hearth/base/error.h"

namespace hearth::serve {
namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

[[noreturn]] void throw_no_address(const std::string& host) {
  throw UsageError(
      fmt::format(
          "the host must be localhost or an address such as 127.0.0.1, 0.0.0.0 "
          "or ::1, got '{}'",
          host
      )
  );
}

Address address_of(const std::string& host, int port) {
  Address out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    out.size = sizeof v4;
    __builtin_memcpy(&out.bytes, &v4, sizeof v4);
  } else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    out.size = sizeof v6;
    __builtin_memcpy(&out.bytes, &v6, sizeof v6);
  } else {
    throw_no_address(host);
  }
  return out;
}

int port_of(int fd) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bytes), &size);
  if (bytes.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&bytes)->sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in*>(&bytes)->sin_port);
}

}  // namespace

bool is_address(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

std::string address_of_host(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  if (!is_address(host)) throw_no_address(host);
  return host;
}

std::vector<std::string> machine_names() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return {};
  return {name, std::string(name) + ".local"};
}

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string peer_name(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    __builtin_memcpy(&v6, &address, sizeof v6);
    for (int i = 8; i < 16; ++i) v6.sin6_addr.s6_addr[i] = 0;
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return std::string(text) + "/64";
  }
  sockaddr_in v4{};
  __builtin_memcpy(&v4, &address, sizeof v4);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return text;
}

ListenSocket listen_on(const std::string& host, int port) {
  constexpr int kBacklog = 512;
  if (port < 0 || port > 65535) {
    throw UsageError(
        fmt::format("the port must be between 0 and 65535, got {}", port)
    );
  }
  const Address address = address_of(host, port);
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM, 0);
  if (fd < 0) throw IoError::from_errno("open a socket for", host);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.bytes.ss_family == AF_INET6) {
    // "::" is IPv6 alone, so that an address means what it says.
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  const auto* at = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (bind(fd, at, address.size) != 0 || listen(fd, kBacklog) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    throw IoError::from_errno(
        "listen on", fmt::format("{} port {}", host, port)
    );
  }
  return {fd, port_of(fd)};
}

}  // namespace hearth::serve
