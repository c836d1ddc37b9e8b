#pragma once
// Which path and method mean what. Paths are compared whole, byte by byte:
// nothing of a request ever names a file.
#include <string>
#include <string_view>

namespace hearth::serve {

enum class Route : unsigned char {
  page,  // the chat page, or one of its files
  health,
  metrics,
  models,
  model,
  chat,
  completions,
  responses,
  embeddings,
};

// Whether the route is answered by a model; such routes take POST, the others
// GET.
bool asks_model(Route route);

struct RouteMatch {
  Route route = Route::page;
  std::string_view name;  // for metrics
  std::string rest;       // of Route::model the model's id, decoded
};

// ApiError 404 for an unknown path.
RouteMatch find_route(std::string_view path);
// ApiError 405 for a method that the route does not take.
void check_method(Route route, std::string_view method);

// The page's file for a path, and its type; null text where there is none.
struct PageFile {
  std::string_view text, type;
};
PageFile page_file(std::string_view path);

}  // namespace hearth::serve
