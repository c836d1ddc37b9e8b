#pragma once
// A TCP connection that never blocks for long.
#include <span>
#include <string>
#include <string_view>

#include "hearth/hub/connection.h"

struct addrinfo;  // NOLINT(readability-identifier-naming): <netdb.h>

namespace hearth::hub {

class Socket {
 public:
  Socket(const Url& url, const Waiting& waiting);
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;

  void write(std::string_view bytes);
  std::size_t read(std::span<char> out);

 private:
  void wait_for(short events, double seconds, const char* what) const;
  bool try_connect(const addrinfo& address);

  int descriptor_ = -1;
  Waiting waiting_;
};

}  // namespace hearth::hub
