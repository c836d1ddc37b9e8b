#pragma once
// A listening TCP socket on one numeric address.
#include <string>
#include <vector>

#include <sys/socket.h>

namespace hearth::serve {

// Whether it is a numeric address, and whether one that only this machine can
// reach: 127.0.0.0/8 or ::1.
bool is_address(const std::string& host);
bool is_loopback(const std::string& host);
// The address to listen on: localhost is 127.0.0.1, addresses are themselves.
// Throws UsageError for other names.
std::string address_of_host(const std::string& host);
// The names of this machine: its own, and that on the local network.
std::vector<std::string> machine_names();

// The address that tells one client from another: of IPv4 all of it, of IPv6
// the first half, since a client has the rest to choose from.
std::string peer_name(const sockaddr_storage& address);

struct ListenSocket {
  int fd = -1;
  int port = 0;
};

// Non-blocking. Throws UsageError when host is no address, IoError when the
// system refuses.
ListenSocket listen_on(const std::string& host, int port);

}  // namespace hearth::serve
