#include "hearth/serve/routes.h"

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/page_files.h"

namespace hearth::serve {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() &&
                       hex_digit(text[i + 1]) >= 0 &&
                       hex_digit(text[i + 2]) >= 0;
    if (!coded) {
      out += text[i];
      continue;
    }
    out +=
        static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

struct Known {
  std::string_view path;
  Route route;
};
constexpr Known kKnown[] = {
    {"/health", Route::health},
    {"/metrics", Route::metrics},
    {"/v1/models", Route::models},
    {"/v1/chat/completions", Route::chat},
    {"/v1/completions", Route::completions},
    {"/v1/responses", Route::responses},
    {"/v1/embeddings", Route::embeddings},
};

}  // namespace

bool asks_model(Route route) {
  return route == Route::chat || route == Route::completions ||
         route == Route::responses || route == Route::embeddings;
}

void check_method(Route route, std::string_view method) {
  const bool posts = asks_model(route);
  const bool fits =
      posts ? method == "POST" : method == "GET" || method == "HEAD";
  if (fits) return;
  throw ApiError(
      405, fmt::format("this path takes {} requests", posts ? "POST" : "GET")
  );
}

RouteMatch find_route(std::string_view path) {
  for (const Known& known : kKnown) {
    if (path == known.path) return {known.route, known.path, {}};
  }
  if (path.starts_with(kModelPrefix)) {
    return {
        Route::model, "/v1/models/ID",
        percent_decoded(path.substr(kModelPrefix.size()))
    };
  }
  if (page_file(path).text.data() != nullptr) return {Route::page, "/", {}};
  throw ApiError(404, "there is nothing at this path");
}

PageFile page_file(std::string_view path) {
  struct Named {
    std::string_view path, file, type;
  };
  constexpr Named kFiles[] = {
      {"/", "index.html", "text/html; charset=utf-8"},
      {"/chat.css", "chat.css", "text/css; charset=utf-8"},
      {"/chat.js", "chat.js", "text/javascript; charset=utf-8"},
      {"/settings.js", "settings.js", "text/javascript; charset=utf-8"},
      {"/view.js", "view.js", "text/javascript; charset=utf-8"},
      {"/markdown.js", "markdown.js", "text/javascript; charset=utf-8"},
      {"/icon.svg", "icon.svg", "image/svg+xml"},
  };
  for (const Named& named : kFiles) {
    if (path != named.path) continue;
    for (const auto& file : page_files()) {
      if (file.name.ends_with(named.file)) return {file.text, named.type};
    }
  }
  return {};
}

}  // namespace hearth::serve
