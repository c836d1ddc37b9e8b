#pragma once
// An error about a request, in the form that OpenAI's clients read.
#include <stdexcept>
#include <string>
#include <string_view>

#include "hearth/serve/http/http_message.h"

namespace hearth::serve {

// param names the key of the request it is about, code is a word for programs;
// either may be empty.
class ApiError : public std::runtime_error {
 public:
  ApiError(
      int status,
      const std::string& message,
      std::string param = {},
      std::string code = {}
  )
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const noexcept { return status_; }
  const std::string& param() const noexcept { return param_; }
  const std::string& code() const noexcept { return code_; }

 private:
  int status_;
  std::string param_, code_;
};

// {"error":{"message":…,"type":…,"param":…,"code":…}}
std::string error_body(const ApiError& error);
// retry_after: seconds, told where trying again later may help.
HttpAnswer error_answer(const ApiError& error, int retry_after = 1);

}  // namespace hearth::serve
