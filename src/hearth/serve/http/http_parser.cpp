#include "hearth/serve/http/http_parser.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "hearth/base/ascii.h"

namespace hearth::serve {
namespace {

bool is_token_char(char c) {
  const auto u = static_cast<unsigned char>(c);
  if (u <= ' ' || u >= 0x7F) return false;
  return std::string_view("\"(),/:;<=>?@[\\]{}").find(c) ==
         std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return c == '\t' || (u >= ' ' && u != 0x7F);
  });
}

}  // namespace

void HttpParser::fail(int status, std::string what) {
  if (!fault_) fault_ = HttpFault{status, std::move(what)};
}

bool HttpParser::wants_continue() {
  if (!continue_asked_ || continue_said_ || done() || fault_) return false;
  continue_said_ = true;
  return true;
}

HttpRequest HttpParser::take() {
  HttpRequest out = std::move(request_);
  *this = HttpParser(limits_);
  return out;
}

std::size_t HttpParser::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !done() && !fault_) {
    const auto rest = bytes.substr(taken);
    switch (state_) {
      case State::head:
        taken += feed_head(rest);
        break;
      case State::body:
      case State::chunk_data:
        taken += feed_body(rest);
        break;
      default:
        taken += feed_chunk_line(rest);
        break;
    }
  }
  return taken;
}

std::size_t HttpParser::feed_head(std::string_view bytes) {
  const std::size_t before = head_.size();
  const std::size_t room = limits_.max_head - before;
  head_ += bytes.substr(0, room);
  // An empty line or two before a request is let pass, as RFC 9112 asks.
  while (head_.starts_with("\r\n")) head_.erase(0, 2);
  const std::size_t skipped =
      before + std::min(room, bytes.size()) - head_.size();
  const std::size_t from = before > skipped + 3 ? before - skipped - 3 : 0;
  const auto end = head_.find("\r\n\r\n", from);
  if (end == std::string::npos) {
    if (std::min(head_.find('\n'), head_.size()) > limits_.max_target + 64) {
      fail(414, "the request line is too long");
    } else if (head_.size() >= limits_.max_head) {
      fail(
          431, fmt::format("headers must be under {} bytes", limits_.max_head)
      );
    }
    return std::min(room, bytes.size());
  }
  const std::size_t taken = end + 4 + skipped - before;
  head_.resize(end + 2);
  parse_head();
  return taken;
}

void HttpParser::parse_head() {
  std::string_view rest = head_;
  bool first = true;
  while (!rest.empty() && !fault_) {
    const auto end = rest.find("\r\n");
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (first ? !parse_request_line(line) : !parse_header(line)) return;
    first = false;
  }
  if (!fault_) choose_framing();
}

// "http://HOST/PATH", as proxies are asked: leaves the path. False where no
// host can be read from it, or nothing but a question is left of a path.
bool HttpParser::take_authority(std::string_view& target) {
  const auto scheme = target.find("://");
  const bool absolute = same_name(target.substr(0, scheme), "http") ||
                        same_name(target.substr(0, scheme), "https");
  if (scheme == target.npos || !absolute) return !target.starts_with('?');
  const auto rest = target.substr(scheme + 3);
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  authority_ = rest.substr(0, end);
  target = end == rest.size() ? std::string_view("/") : rest.substr(end);
  return !authority_.empty() && authority_.find('@') == authority_.npos;
}

bool HttpParser::parse_request_line(std::string_view line) {
  const auto space = line.find(' '), last = line.rfind(' ');
  if (space == line.npos || last == space) {
    fail(400, "the request line must be METHOD TARGET VERSION");
    return false;
  }
  const auto method = line.substr(0, space), version = line.substr(last + 1);
  auto target = line.substr(space + 1, last - space - 1);
  const bool plain = std::ranges::all_of(target, [](char c) {
    return static_cast<unsigned char>(c) > ' ' &&
           static_cast<unsigned char>(c) < 0x7F;
  });
  if (target.size() > limits_.max_target) {
    fail(414, "the request target is too long");
  } else if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  } else if (!is_token(method) || method.size() > 16) {
    fail(400, "the method is not a word");
  } else if (!plain || !take_authority(target) ||
             (!target.starts_with('/') && !target.starts_with('?') &&
              target != "*")) {
    fail(400, "the request target must be a path");
  }
  if (fault_) return false;
  request_.method = method;
  const auto question = target.find('?');
  request_.path = question == 0 ? "/" : target.substr(0, question);
  if (question != target.npos) request_.query = target.substr(question + 1);
  request_.minor = version.back() - '0';
  return true;
}

bool HttpParser::check_header(std::string_view line, std::size_t before) {
  const auto colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) {
    fail(400, "a header must be NAME: VALUE on one line");
  } else if (before >= limits_.max_headers) {
    fail(431, fmt::format("at most {} headers are read", limits_.max_headers));
  } else if (!is_value(line.substr(colon + 1))) {
    fail(400, "a header value holds a control character");
  }
  return !fault_;
}

bool HttpParser::parse_header(std::string_view line) {
  if (!check_header(line, request_.headers.size())) return false;
  const auto colon = line.find(':');
  request_.headers.emplace_back(
      line.substr(0, colon), trimmed(line.substr(colon + 1))
  );
  return true;
}

bool HttpParser::content_length(std::size_t& length) {
  const std::string& text = *request_.header("Content-Length");
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), length);
  const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!digits) {
    fail(400, "Content-Length must be one number");
  } else if (error != std::errc() || length > limits_.max_body) {
    fail(
        413, fmt::format("the body must be at most {} bytes", limits_.max_body)
    );
  }
  return !fault_;
}

// The host of a whole URL is the one that counts, whatever the header says.
void HttpParser::set_host() {
  for (auto& [name, value] : request_.headers) {
    if (!same_name(name, "Host")) continue;
    value = authority_;
    return;
  }
  request_.headers.emplace_back("Host", authority_);
}

void HttpParser::choose_framing() {
  int lengths = 0, encodings = 0, hosts = 0;
  for (const auto& [name, value] : request_.headers) {
    lengths += same_name(name, "Content-Length") ? 1 : 0;
    encodings += same_name(name, "Transfer-Encoding") ? 1 : 0;
    hosts += same_name(name, "Host") ? 1 : 0;
  }
  if (hosts > 1 || (hosts == 0 && request_.minor == 1)) {
    return fail(400, "a request must have one Host header");
  }
  if (!authority_.empty()) set_host();
  if (lengths + encodings > 1) {
    return fail(400, "the length of the body is given twice");
  }
  const std::string* expect = request_.header("Expect");
  if (expect != nullptr && !same_name(*expect, "100-continue")) {
    return fail(417, "only Expect: 100-continue is known");
  }
  continue_asked_ = expect != nullptr && request_.minor == 1;
  state_ = State::done;
  if (encodings == 1) {
    if (!same_name(*request_.header("Transfer-Encoding"), "chunked") ||
        request_.minor == 0) {
      return fail(501, "the only transfer encoding is chunked");
    }
    chunked_ = true;
    state_ = State::chunk_size;
  } else if (lengths == 1) {
    if (!content_length(left_)) return;
    if (left_ > 0) state_ = State::body;
  }
}

std::size_t HttpParser::feed_body(std::string_view bytes) {
  const std::size_t n = std::min(left_, bytes.size());
  request_.body += bytes.substr(0, n);
  left_ -= n;
  if (left_ == 0) state_ = chunked_ ? State::chunk_end : State::done;
  return n;
}

bool HttpParser::feed_line(
    std::string_view bytes,
    std::size_t& taken,
    std::size_t most
) {
  const auto newline = bytes.find('\n');
  taken = newline == bytes.npos ? bytes.size() : newline + 1;
  line_ += bytes.substr(0, taken);
  if (line_.size() > most + 2) {
    fail(400, "a line of the chunked body is too long");
    return false;
  }
  if (newline == bytes.npos) return false;
  if (!line_.ends_with("\r\n")) {
    fail(400, "lines of a chunked body must end in CR LF");
    return false;
  }
  line_.resize(line_.size() - 2);
  return true;
}

std::size_t HttpParser::feed_chunk_line(std::string_view bytes) {
  std::size_t taken = 0;
  const std::size_t most = state_ == State::chunk_size  ? 256
                           : state_ == State::chunk_end ? 0
                                                        : limits_.max_target;
  if (feed_line(bytes, taken, most)) end_chunk_line();
  return taken;
}

// A trailer line is not part of the request, but it must have the form of a
// header.
void HttpParser::end_trailer_line(std::string_view line) {
  if (line.empty()) {
    state_ = State::done;
    return;
  }
  trailer_bytes_ += line.size();
  if (trailer_bytes_ > limits_.max_head) {
    return fail(431, "the trailer is too long");
  }
  check_header(line, trailer_lines_++);
}

void HttpParser::end_chunk_line() {
  const std::string line = std::exchange(line_, {});
  if (state_ == State::chunk_end) {
    state_ = State::chunk_size;
    return;
  }
  if (state_ == State::trailer) return end_trailer_line(line);
  std::size_t size = 0;
  const auto semicolon = line.find(';');
  auto digits = std::string_view(line).substr(0, semicolon);
  // The RFC allows blanks only before an extension, and another reader might
  // take a control character for the end of the line.
  if (semicolon != line.npos) {
    while (digits.ends_with(' ') || digits.ends_with('\t')) {
      digits.remove_suffix(1);
    }
    if (!is_value(std::string_view(line).substr(semicolon))) {
      return fail(400, "the extension of a chunk holds a control character");
    }
  }
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  if (digits.empty() || end != digits.data() + digits.size() ||
      digits.size() > 8 || error != std::errc()) {
    return fail(400, "a chunk must begin with its size in hexadecimal");
  }
  if (size > limits_.max_body - request_.body.size()) {
    return fail(
        413, fmt::format("the body must be at most {} bytes", limits_.max_body)
    );
  }
  left_ = size;
  state_ = size == 0 ? State::trailer : State::chunk_data;
}

}  // namespace hearth::serve
