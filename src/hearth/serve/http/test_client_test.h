#pragma once
// A client for tests: raw bytes to a port of this machine, answers read whole.
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

namespace hearth::serve {

class TestClient {
 public:
  explicit TestClient(int port, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      setsockopt(
          fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer
      );
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  ~TestClient() { hang_up(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  // The server sees the end of what is sent; answers are still read.
  void stop_sending() { shutdown(fd_, SHUT_WR); }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // One more read; false at the end, or when nothing comes for that long.
  bool read(int patience_ms = 10'000) {
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, patience_ms) <= 0) return false;
    char bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    got.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  // Reads until the text has come; false when it never does.
  bool read_until(std::string_view text) {
    while (got.find(text) == std::string::npos) {
      if (!read()) return false;
    }
    return true;
  }
  // Reads until the server closes.
  std::string read_all() {
    while (read()) continue;
    return got;
  }

  std::string got;

 private:
  int fd_ = -1;
};

// A request with a body that asks for the connection to be closed.
inline std::string closing_request(
    std::string_view method,
    std::string_view path,
    std::string_view body = {},
    std::string_view headers = {}
) {
  std::string out;
  out.append(method).append(" ").append(path).append(" HTTP/1.1\r\n");
  out += "Host: localhost\r\nConnection: close\r\n";
  out.append(headers);
  if (!body.empty()) {
    out += "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n";
  }
  return out.append("\r\n").append(body);
}

}  // namespace hearth::serve
