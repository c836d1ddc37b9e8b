#pragma once
// An HTTP server whose requests a service answers.
#include <functional>
#include <memory>

#include "hearth/serve/http/http_server.h"
#include "hearth/serve/service.h"

namespace hearth::serve {

// The service is asked for when a request comes, so that the port can be taken
// before there is one; start() only then. It must outlive the server.
std::unique_ptr<HttpServer> make_server(
    HttpServerOptions options,
    const std::function<Service&()>& service
);

}  // namespace hearth::serve
