#include "hearth/hub/checksum.h"

#include <vector>

#include <fcntl.h>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/hub/repo_name.h"

namespace hearth::hub {

struct Checksum::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void require(int done) const {
    if (done != 1) throw Error("[hub.checksum] OpenSSL must compute the hash");
  }
};

Checksum::Checksum(std::string_view oid, std::uint64_t size)
    : state_(std::make_unique<State>()) {
  const bool large = is_sha256(oid);
  state_->require(state_->context != nullptr ? 1 : 0);
  state_->require(EVP_DigestInit_ex(
      state_->context, large ? EVP_sha256() : EVP_sha1(), nullptr
  ));
  if (large) return;
  const std::string head = fmt::format("blob {}", size);
  update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::update(std::span<const std::byte> bytes) {
  state_->require(
      EVP_DigestUpdate(state_->context, bytes.data(), bytes.size())
  );
}

std::string Checksum::digest() {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  state_->require(EVP_DigestFinal_ex(state_->context, out, &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", out[i]);
  return text;
}

std::string checksum_of_file(
    const std::string& path,
    std::string_view oid,
    std::uint64_t size
) {
  const FileHandle file = FileHandle::open(path, O_RDONLY, "read");
  Checksum sum(oid, size);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::size_t at = 0;
  while (const std::size_t n = file.read_at(buffer, at)) {
    sum.update(std::span(buffer).first(n));
    at += n;
  }
  return sum.digest();
}

}  // namespace hearth::hub
