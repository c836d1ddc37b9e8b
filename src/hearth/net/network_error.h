#pragma once
// The error of a network that failed.
#include <optional>
#include <string>

#include "hearth/base/error.h"

namespace hearth::net {

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

}  // namespace hearth::net
