#pragma once
// Bytes of a connection to requests, as they come. Strict: what two readers
// might take for two different requests is refused, and every length is
// bounded before it is believed.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/serve/http/http_message.h"

namespace hearth::serve {

struct HttpLimits {
  std::size_t max_target = 4096;
  std::size_t max_head = std::size_t{32} << 10;
  std::size_t max_headers = 100;
  std::size_t max_body = std::size_t{8} << 20;
};

struct HttpFault {
  int status = 400;
  std::string what;
};

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits) : limits_(limits) {}

  // Takes bytes up to the end of one request and says how many it took. After
  // done() or fault() it takes none.
  std::size_t feed(std::string_view bytes);

  bool started() const { return !head_.empty() || state_ != State::head; }
  bool head_done() const { return state_ != State::head; }
  bool done() const { return state_ == State::done; }
  const std::optional<HttpFault>& fault() const { return fault_; }
  // The request as far as it was read; everything but its body once
  // head_done().
  const HttpRequest& head() const { return request_; }
  std::size_t body_size() const { return request_.body.size(); }
  // No bytes tell: the request under way says so from now on.
  void comes_from(std::string peer) { request_.peer = std::move(peer); }
  // The client waits for a word before it sends the body; asked once.
  bool wants_continue();

  // The request that is done; the parser is ready for the next one.
  HttpRequest take();

 private:
  enum class State : unsigned char {
    head,
    body,
    chunk_size,
    chunk_data,
    chunk_end,
    trailer,
    done,
  };

  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  // Takes a line into line_; true when it is whole.
  bool feed_line(std::string_view bytes, std::size_t& taken, std::size_t most);
  std::size_t feed_chunk_line(std::string_view bytes);
  void parse_head();
  bool parse_request_line(std::string_view line);
  bool take_authority(std::string_view& target);
  // Checks one header line; `before` counts the lines before it.
  bool check_header(std::string_view line, std::size_t before);
  bool parse_header(std::string_view line);
  void set_host();
  void choose_framing();
  bool content_length(std::size_t& length);
  void end_chunk_line();
  void end_trailer_line(std::string_view line);
  void fail(int status, std::string what);

  HttpLimits limits_;
  State state_ = State::head;
  std::string head_, line_;
  std::string authority_;  // of a target that is a whole URL
  std::size_t left_ = 0;   // bytes of the body or chunk still to come
  std::size_t trailer_bytes_ = 0, trailer_lines_ = 0;
  bool chunked_ = false, continue_asked_ = false, continue_said_ = false;
  HttpRequest request_;
  std::optional<HttpFault> fault_;
};

}  // namespace hearth::serve
