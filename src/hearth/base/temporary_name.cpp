#include "hearth/base/temporary_name.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr std::size_t kDigits = 16;
constexpr int kTries = 16;

// Asked of the system each time, so that a forked child draws other numbers.
std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (getentropy(&bits, sizeof bits) != 0) {
    throw Error(
        fmt::format(
            "[base.temporary_name] the system must give random numbers, got "
            "'{}'",
            std::strerror(errno)
        )
    );
  }
  return bits;
}

bool is_only(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

// "PROCESS-COUNT", as earlier versions named them.
bool is_process_and_count(std::string_view name) {
  const std::size_t dash = name.find('-');
  return dash != 0 && dash != std::string_view::npos &&
         dash + 1 < name.size() && dash == name.rfind('-') &&
         is_only(name, "0123456789-");
}

}  // namespace

std::string temporary_name(std::string_view path) {
  return fmt::format("{}{}{:016x}", path, kMark, random_bits());
}

bool is_temporary_name(std::string_view name) {
  const std::size_t at = name.rfind(kMark);
  if (at == 0 || at == std::string_view::npos) return false;
  name.remove_prefix(at + kMark.size());
  return is_process_and_count(name) ||
         (name.size() == kDigits && is_only(name, "0123456789abcdef"));
}

FileHandle create_temporary(const std::string& path, int mode) {
  for (int i = 0; i < kTries; ++i) {
    auto file = FileHandle::create_new(temporary_name(path), mode);
    if (!file) continue;
    // Where the file system has no locks, remove_unfinished() leaves young
    // files alone.
    (void)flock(file->get(), LOCK_EX | LOCK_NB);
    return std::move(*file);
  }
  throw IoError(
      fmt::format("cannot create {}{}*: every name is taken", path, kMark)
  );
}

bool is_being_written(const std::string& temporary) {
  const FileHandle file = FileHandle::open(temporary, O_RDONLY, "open");
  return flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace hearth
