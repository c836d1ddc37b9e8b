#pragma once
// TLS over a Socket. OpenSSL works on memory and the socket is read and written
// here, so that waiting is bounded and a closed connection raises no signal.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/hub/socket_impl.h"

namespace hearth::hub {

class Tls {
 public:
  // Shakes hands. Throws NetworkError, or UsageError when the certificate is
  // not to be trusted, which trying again does not mend.
  Tls(Socket& socket, const std::string& host);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  void write(std::string_view bytes);
  std::size_t read(std::span<char> out);

 private:
  struct State;
  void send_pending();
  // False at the end of the stream.
  bool receive();
  void step(int result, const char* doing);

  std::unique_ptr<State> state_;
};

}  // namespace hearth::hub
