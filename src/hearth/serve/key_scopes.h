#pragma once
// A scope for each key, named so that the name tells nothing about the key.
// Prompts are kept by scope, so that no key finds what another one asked.
#include <string>
#include <string_view>

#include "hearth/base/hash.h"

namespace hearth::serve {

class KeyScopes {
 public:
  // Names that hold for the time of this process.
  KeyScopes();
  // Names that hold from one process to the next, for what is kept in that
  // folder: a secret lies there, made where there is none. Throws IoError when
  // it can be neither read nor made, FormatError when it is no secret.
  explicit KeyScopes(const std::string& folder);

  // Another for each key; nobody without the secret can tell which key.
  Hash128 of(std::string_view key) const;

 private:
  std::string secret_;
};

}  // namespace hearth::serve
