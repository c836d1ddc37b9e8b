#include "hearth/serve/serving.h"

namespace hearth::serve {

std::unique_ptr<HttpServer> make_server(
    HttpServerOptions options,
    const std::function<Service&()>& service
) {
  options.gate = [=](const auto& head) { return service().gate(head); };
  options.fault_answer = [=](const auto& fault) {
    return service().fault_answer(fault);
  };
  options.owner = [=](const auto& request) { return service().owner(request); };
  options.slow_handler = [=](const auto& request, const auto& reply) {
    service().handle(request, reply);
  };
  return std::make_unique<HttpServer>(
      std::move(options), [=](const auto& request, const auto& reply) {
        service().handle_quick(request, reply);
      }
  );
}

}  // namespace hearth::serve
