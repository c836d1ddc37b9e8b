#include "hearth/serve/key_scopes.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/temporary_name.h"

namespace hearth::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSecretBytes = 32;
constexpr const char* kSecretFile = "scopes.secret";

std::string drawn_secret() {
  std::string out(kSecretBytes, '\0');
  if (getentropy(out.data(), out.size()) != 0) {
    throw Error(
        fmt::format(
            "[serve.KeyScopes] the system must give random numbers, got '{}'",
            std::strerror(errno)
        )
    );
  }
  return out;
}

// Whole or not there at all; of two processes at once, one makes it.
void make_secret(const std::string& path) {
  FileHandle file = create_temporary(path);
  const std::string& temporary = file.path();
  fchmod(file.get(), 0600);
  const std::string secret = drawn_secret();
  file.write(std::as_bytes(std::span(secret)));
  file.sync();
  const int failed = link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  if (failed != 0 && failed != EEXIST) {
    errno = failed;
    throw IoError::from_errno("create", path);
  }
}

std::string kept_secret(const std::string& folder) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::string path = (fs::path(folder) / kSecretFile).string();
  if (!fs::exists(path)) make_secret(path);
  std::string secret = read_text_file(path, kSecretBytes);
  if (secret.size() == kSecretBytes) return secret;
  throw FormatError(
      fmt::format(
          "[serve.KeyScopes] {} must hold {} bytes, got {}", path, kSecretBytes,
          secret.size()
      )
  );
}

}  // namespace

KeyScopes::KeyScopes() : secret_(drawn_secret()) {}

KeyScopes::KeyScopes(const std::string& folder)
    : secret_(kept_secret(folder)) {}

// HMAC-SHA256, the first half of it.
Hash128 KeyScopes::of(std::string_view key) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* made = HMAC(
      EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
      reinterpret_cast<const unsigned char*>(key.data()), key.size(),
      digest.data(), &size
  );
  if (made == nullptr) throw Error("[serve.KeyScopes] OpenSSL must be usable");
  Hash128 out;
  std::memcpy(&out.high, digest.data(), sizeof out.high);
  std::memcpy(&out.low, digest.data() + sizeof out.high, sizeof out.low);
  return out;
}

}  // namespace hearth::serve
