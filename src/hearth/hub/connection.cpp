#include "hearth/hub/connection.h"

#include <fmt/format.h>

#include "hearth/hub/socket_impl.h"
#include "hearth/hub/tls_impl.h"

namespace hearth::hub {

struct Connection::State {
  Socket socket;
  std::optional<Tls> tls;
};

Connection::Connection(const Url& url, const Waiting& waiting)
    : state_(new State{Socket(url, waiting), std::nullopt}) {
  if (url.secure) state_->tls.emplace(state_->socket, url.host);
}

Connection::~Connection() = default;

void Connection::write(std::string_view bytes) {
  if (state_->tls) return state_->tls->write(bytes);
  state_->socket.write(bytes);
}

std::size_t Connection::read(std::span<char> out) {
  return state_->tls ? state_->tls->read(out) : state_->socket.read(out);
}

}  // namespace hearth::hub
