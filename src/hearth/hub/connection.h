#pragma once
// Bytes to and from one host, over TCP or TLS. Every wait has a limit and asks
// now and then whether to go on. Certificates are checked against the system's
// (SSL_CERT_FILE names others), and the host's name against the certificate.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/hub/url.h"

namespace hearth::hub {

// The network failed, and may work when tried again.
class NetworkError : public Error {
 public:
  explicit NetworkError(
      const std::string& message,
      std::optional<double> wait = std::nullopt
  )
      : Error(message), wait_(wait) {}
  // Seconds after which the other side asks to be tried again.
  std::optional<double> wait() const { return wait_; }

 private:
  std::optional<double> wait_;
};

struct Waiting {
  double connect_seconds = 15;
  double idle_seconds = 30;  // without a byte
  // Throws to end a wait; called several times a second.
  std::function<void()> check = [] {};
};

class Connection {
 public:
  // Throws NetworkError.
  Connection(const Url& url, const Waiting& waiting);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void write(std::string_view bytes);
  // At least one byte; 0 when the other side has closed.
  std::size_t read(std::span<char> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::hub
