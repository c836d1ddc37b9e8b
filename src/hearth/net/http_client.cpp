#include "hearth/net/http_client.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <system_error>

#include <curl/curl.h>
#include <fmt/format.h>

#include "hearth/base/quoted.h"
#include "hearth/net/pipe_signal_impl.h"
#include "hearth/net/speed_watch_impl.h"

namespace hearth::net {
namespace {

constexpr int kSliceMilliseconds = 100;
constexpr const char* kHeadTooLarge = "the answer's headers are too large";

template <auto free_it>
struct FreeBy {
  template <typename T>
  void operator()(T* held) const {
    free_it(held);
  }
};
using Handle = std::unique_ptr<CURL, FreeBy<curl_easy_cleanup>>;
using Handles = std::unique_ptr<CURLM, FreeBy<curl_multi_cleanup>>;
using Lines = std::unique_ptr<curl_slist, FreeBy<curl_slist_free_all>>;

// One handle for each thread: its connections, and the system's certificates,
// which take longer to read than a handshake, serve the next request too.
CURLM* connections() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_local const Handles mine(curl_multi_init());
  if (ready != CURLE_OK || mine == nullptr) {
    throw Error("[net.http_fetch] libcurl must be usable, and does not start");
  }
  return mine.get();
}

class Exchange {
 public:
  Exchange(
      const HttpRequest& request,
      const HttpLimits& limits,
      const HttpReceiver& receiver
  )
      : request_(request),
        limits_(limits),
        receiver_(receiver),
        speed_(limits),
        handle_(curl_easy_init()) {
    if (handle_ == nullptr) throw Error("[net.http_fetch] no memory is left");
    set_request();
    set_limits();
    set_trust();
  }

  HttpHead run() {
    const NoPipeSignal quiet;
    CURLM* all = connections();
    curl_multi_add_handle(all, handle_.get());
    const std::unique_ptr<CURL, Leave> leave(handle_.get(), Leave{all});
    int running = 1;
    while (true) {
      curl_multi_perform(all, &running);
      if (thrown_) std::rethrow_exception(thrown_);
      if (running == 0) break;
      receiver_.check();
      speed_.check(is_connected());
      curl_multi_poll(all, nullptr, 0, kSliceMilliseconds, nullptr);
    }
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(all, &left);
    finish(message == nullptr ? CURLE_OK : message->data.result);
    return std::move(head_);
  }

 private:
  struct Leave {
    CURLM* all;
    void operator()(CURL* handle) const {
      curl_multi_remove_handle(all, handle);
    }
  };

  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(handle_.get(), option, value) != CURLE_OK) {
      throw Error(
          fmt::format(
              "[net.http_fetch] libcurl must know option {}, got one that does "
              "not",
              static_cast<int>(option)
          )
      );
    }
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw Error("[net.http_fetch] no memory is left");
    // curl_slist_append() returns the same head after the first line.
    if (headers_ == nullptr) headers_.reset(longer);
  }

  void set_request() {
    url_ = request_.url.origin() + request_.url.target;
    set(CURLOPT_URL, url_.c_str());
    // The path goes out as it is: no ".." is folded.
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, "hearth");
    if (request_.head_only) set(CURLOPT_NOBODY, 1L);
    if (request_.post) {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, request_.post->data());
      set(CURLOPT_POSTFIELDSIZE_LARGE,
          static_cast<curl_off_t>(request_.post->size()));
      add_header("Expect:");  // no waiting for 100 Continue
    }
    for (const auto& [name, value] : request_.headers) {
      add_header(fmt::format("{}: {}", name, value));
    }
    if (headers_ != nullptr) set(CURLOPT_HTTPHEADER, headers_.get());
    if (request_.url.is_loopback()) set(CURLOPT_NOPROXY, "*");
  }

  void set_limits() {
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(limits_.connect_seconds * 1000));
    set(CURLOPT_HEADERFUNCTION, &Exchange::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Exchange::on_body);
    set(CURLOPT_WRITEDATA, this);
  }

  void set_trust() {
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (const char* file = std::getenv("SSL_CERT_FILE")) {
      set(CURLOPT_CAINFO, file);
    }
    if (const char* folder = std::getenv("SSL_CERT_DIR")) {
      set(CURLOPT_CAPATH, folder);
    }
  }

  bool is_connected() const {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(
        handle_.get(), CURLINFO_PRETRANSFER_TIME_T, &microseconds
    );
    return microseconds > 0;
  }

  // What a callback throws must not pass through libcurl: it is kept, and the
  // transfer ends. `step` says whether to go on.
  template <typename Step>
  std::size_t guarded(std::size_t bytes, const Step& step) {
    try {
      speed_.add(bytes);
      if (step()) return bytes;
      stopped_ = true;
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return bytes == 0 ? 1 : 0;
  }

  static std::size_t on_header(
      char* data,
      std::size_t size,
      std::size_t count,
      void* self
  ) {
    auto* const exchange = static_cast<Exchange*>(self);
    const std::string_view line(data, size * count);
    return exchange->guarded(line.size(), [&] {
      return exchange->take_header(line);
    });
  }

  static std::size_t on_body(
      char* data,
      std::size_t size,
      std::size_t count,
      void* self
  ) {
    auto* const exchange = static_cast<Exchange*>(self);
    const std::string_view bytes(data, size * count);
    return exchange->guarded(bytes.size(), [&] {
      return exchange->receiver_.body(bytes);
    });
  }

  bool take_header(std::string_view line) {
    text_ += line;
    if (text_.size() > kMostHeadBytes) {
      throw FormatError(kHeadTooLarge);
    }
    if (has_head_) return true;  // what stands behind a body in chunks
    if (line != "\r\n" && line != "\n") return true;
    HttpHead head =
        parse_http_head(std::string_view(text_).substr(head_begin_));
    head_begin_ = text_.size();
    if (head.status < 200) return true;  // such as 100 Continue
    check_body_headers(head, request_.head_only);
    head_ = std::move(head);
    has_head_ = true;
    return receiver_.head(head_);
  }

  // Throws what the end of the transfer means.
  void finish(CURLcode code) const {
    if (stopped_ || code == CURLE_OK) return;
    // What libcurl says of a header line beyond its own limit: newer releases
    // have a code of its own for it, of number 100.
    const bool too_large =
        code == CURLE_OUT_OF_MEMORY || static_cast<int>(code) == 100;
    if (!has_head_ && too_large) throw FormatError(kHeadTooLarge);
    switch (code) {
      case CURLE_GOT_NOTHING:
        throw NetworkError("it closed without an answer");
      case CURLE_PARTIAL_FILE:
        throw NetworkError("it broke off before the end");
      case CURLE_RECV_ERROR:
      case CURLE_SEND_ERROR:
        throw NetworkError(fmt::format("it broke off: {}", reason(code)));
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
        throw NetworkError(
            fmt::format("the host was not found: {}", reason(code))
        );
      case CURLE_COULDNT_CONNECT:
        throw NetworkError(fmt::format("cannot connect: {}", system_reason()));
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_WEIRD_SERVER_REPLY:
      case CURLE_BAD_CONTENT_ENCODING:
        throw FormatError(
            fmt::format("the answer is not HTTP: {}", reason(code))
        );
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        throw UsageError(
            fmt::format(
                "the certificate of {} is not trusted: {}", request_.url.host,
                reason(code)
            ),
            "SSL_CERT_FILE names a file of certificates to trust"
        );
      default:
        throw NetworkError(std::string(reason(code)));
    }
  }

  std::string reason(CURLcode code) const {
    return error_[0] == '\0' ? curl_easy_strerror(code) : error_;
  }

  std::string system_reason() const {
    long number = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_OS_ERRNO, &number);
    if (number == 0) return reason(CURLE_COULDNT_CONNECT);
    const auto code = static_cast<int>(number);
    return std::error_code(code, std::generic_category()).message();
  }

  const HttpRequest& request_;
  const HttpLimits& limits_;
  const HttpReceiver& receiver_;
  SpeedWatch speed_;
  Handle handle_;
  Lines headers_;
  std::string url_, text_;  // text_: all heads, as they came
  std::size_t head_begin_ = 0;
  HttpHead head_;
  bool has_head_ = false, stopped_ = false;
  std::exception_ptr thrown_;
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace

HttpHead http_fetch(
    const HttpRequest& request,
    const HttpLimits& limits,
    const HttpReceiver& receiver
) {
  return Exchange(request, limits, receiver).run();
}

}  // namespace hearth::net
