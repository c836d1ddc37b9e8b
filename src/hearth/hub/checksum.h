#pragma once
// The checksum a hub names a file by: sha256 of its bytes for a large one, the
// id git gives the blob (sha1 of a header and the bytes) for a plain one.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth::hub {

class Checksum {
 public:
  // oid decides which, by its length; size is the whole file's.
  Checksum(std::string_view oid, std::uint64_t size);
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // Lower-case hexadecimal; nothing can be added afterwards.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The checksum of a whole file.
std::string checksum_of_file(
    const std::string& path,
    std::string_view oid,
    std::uint64_t size
);

}  // namespace hearth::hub
