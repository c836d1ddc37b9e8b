#pragma once
// A listening TCP socket on one numeric address.
#include <string>

namespace hearth::serve {

// Whether only this machine can reach the address: 127.0.0.0/8 or ::1.
bool is_loopback(const std::string& host);

struct ListenSocket {
  int fd = -1;
  int port = 0;
};

// Non-blocking. Throws UsageError when host is no address, IoError when the
// system refuses.
ListenSocket listen_on(const std::string& host, int port);

}  // namespace hearth::serve
