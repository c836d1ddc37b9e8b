#include <cstring>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "hearth/hub/tls_impl.h"

namespace hearth::hub {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string error_text() {
  const unsigned long code = ERR_get_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "it broke off" : reason;
}

// One for the process: it holds the system's certificates, whose reading takes
// longer than a handshake.
SSL_CTX* context() {
  static const std::unique_ptr<SSL_CTX, FreeContext> shared = [] {
    std::unique_ptr<SSL_CTX, FreeContext> made(
        SSL_CTX_new(TLS_client_method())
    );
    if (made == nullptr ||
        SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_default_verify_paths(made.get()) != 1) {
      throw Error("[hub.tls] OpenSSL must be usable, got: " + error_text());
    }
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
    return made;
  }();
  return shared.get();
}

bool is_address(const std::string& host) {
  return host.find(':') != host.npos ||
         host.find_first_not_of("0123456789.") == host.npos;
}

}  // namespace

struct Tls::State {
  struct FreeSession {
    void operator()(SSL* held) const { SSL_free(held); }
  };
  Socket& socket;
  std::string host;
  std::unique_ptr<SSL, FreeSession> session;
  BIO *in = nullptr, *out = nullptr;  // the session's
  std::vector<char> buffer = std::vector<char>(kReadBytes);
};

Tls::Tls(Socket& socket, const std::string& host)
    : state_(new State{socket, host}) {
  State& s = *state_;
  s.session.reset(SSL_new(context()));
  s.in = BIO_new(BIO_s_mem());
  s.out = BIO_new(BIO_s_mem());
  SSL_set_bio(s.session.get(), s.in, s.out);
  X509_VERIFY_PARAM* wanted = SSL_get0_param(s.session.get());
  const bool named =
      is_address(host)
          ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1
          : X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0) == 1 &&
                SSL_set_tlsext_host_name(s.session.get(), host.c_str()) == 1;
  if (!named) throw Error("[hub.tls] a host must be nameable, got: " + host);
  while (true) {
    const int result = SSL_connect(s.session.get());
    if (result == 1) break;
    step(result, "the TLS handshake");
  }
  send_pending();
}

Tls::~Tls() = default;

void Tls::send_pending() {
  State& s = *state_;
  while (BIO_ctrl_pending(s.out) > 0) {
    const int n =
        BIO_read(s.out, s.buffer.data(), static_cast<int>(s.buffer.size()));
    if (n <= 0) return;
    s.socket.write({s.buffer.data(), static_cast<std::size_t>(n)});
  }
}

bool Tls::receive() {
  State& s = *state_;
  const std::size_t n = s.socket.read(s.buffer);
  if (n == 0) return false;
  BIO_write(s.in, s.buffer.data(), static_cast<int>(n));
  return true;
}

// Does what OpenSSL waits for, or throws.
void Tls::step(int result, const char* doing) {
  State& s = *state_;
  const int kind = SSL_get_error(s.session.get(), result);
  send_pending();
  if (kind == SSL_ERROR_WANT_WRITE) return;
  if (kind == SSL_ERROR_WANT_READ && receive()) return;
  if (kind == SSL_ERROR_WANT_READ) {
    throw NetworkError(fmt::format("it broke off {}", doing));
  }
  const long verified = SSL_get_verify_result(s.session.get());
  if (verified != X509_V_OK) {
    ERR_clear_error();
    throw UsageError(
        fmt::format(
            "the certificate of {} is not trusted: {}", s.host,
            X509_verify_cert_error_string(verified)
        ),
        "SSL_CERT_FILE names a file of certificates to trust"
    );
  }
  throw NetworkError(fmt::format("{} failed: {}", doing, error_text()));
}

void Tls::write(std::string_view bytes) {
  State& s = *state_;
  while (!bytes.empty()) {
    std::size_t done = 0;
    const int result =
        SSL_write_ex(s.session.get(), bytes.data(), bytes.size(), &done);
    if (result == 1) {
      bytes.remove_prefix(done);
      send_pending();
    } else {
      step(result, "the TLS connection");
    }
  }
}

std::size_t Tls::read(std::span<char> out) {
  State& s = *state_;
  while (true) {
    std::size_t done = 0;
    const int result =
        SSL_read_ex(s.session.get(), out.data(), out.size(), &done);
    if (result == 1) return done;
    const int kind = SSL_get_error(s.session.get(), result);
    if (kind == SSL_ERROR_ZERO_RETURN) return 0;
    if (kind == SSL_ERROR_WANT_READ) {
      send_pending();
      // A stream that ends without a word of goodbye: the length of the body
      // says whether that was too early.
      if (!receive()) return 0;
      continue;
    }
    step(result, "the TLS connection");
  }
}

}  // namespace hearth::hub
