#pragma once
// The head of an HTTP/1.1 response, out of bytes that may be anything: status,
// headers, and how long the body is. Bounded in every direction.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::hub {

inline constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;

struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names lower case

  // The first of that name (lower case); nothing when there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  bool is_redirect() const;
};

// text is everything up to the empty line. Throws FormatError.
HttpHead parse_http_head(std::string_view text);

// Where the head ends in what was received so far: the offset of the first byte
// of the body; nothing while the empty line has not come.
std::optional<std::size_t> end_of_head(std::string_view received);

struct BodyFrame {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};
// Throws FormatError when the headers contradict each other, or when the body
// is compressed, which was not asked for.
BodyFrame body_frame(const HttpHead& head, bool head_request);

// A number of decimal digits alone; nothing when it is anything else or large.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

// A body in chunks, as it arrives: feed() appends the content to `out`.
class ChunkReader {
 public:
  // Throws FormatError. After the last chunk the rest of the input is ignored.
  void feed(std::string_view bytes, std::string& out);
  bool done() const { return state_ == State::done; }

 private:
  enum class State { size, data, data_end, trailer, done };
  void take_line(std::string_view line);

  State state_ = State::size;
  std::uint64_t left_ = 0;
  std::size_t trailer_bytes_ = 0;
  std::string line_;
};

}  // namespace hearth::hub
