// From a request for vectors to what the engine is asked for.
#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/served_model.h"

namespace hearth::serve {
namespace {

// Numbers of one answer: at ten bytes each it still fits anywhere.
constexpr std::size_t kMostNumbers = std::size_t{4} << 20;

TokenIds ids_of(
    const ServedModel& model,
    const TextOrIds& input,
    const std::string& where
) {
  const int limit = model.engine->limit();
  const auto* given = std::get_if<TokenIds>(&input);
  TokenIds ids =
      given != nullptr
          ? *given
          : model.text->whole_ids(std::get<std::string>(input), limit, where);
  if (ids.empty()) {
    throw ApiError(400, fmt::format("'{}' is empty", where), where);
  }
  if (ids.size() > static_cast<std::size_t>(limit)) {
    throw ApiError(
        400,
        fmt::format(
            "'{}' has {} tokens, which is more than the {} tokens of this "
            "model's context",
            where, ids.size(), limit
        ),
        where, "context_length_exceeded"
    );
  }
  const int vocabulary = model.engine->vocabulary();
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw ApiError(
        400,
        fmt::format(
            "'{}' must have token ids from 0 to {}, got {}", where,
            vocabulary - 1, id
        ),
        where
    );
  }
  return ids;
}

std::size_t dimensions_of(
    const ServedModel& model,
    const EmbeddingRequest& request
) {
  const int width = model.engine->width();
  if (width == 0) {
    throw ApiError(400, "this model gives no embeddings", "model");
  }
  const int wanted = request.dimensions.value_or(width);
  if (wanted > width) {
    throw ApiError(
        400,
        fmt::format(
            "'dimensions' must be from 1 to {}, which this model has, got {}",
            width, wanted
        ),
        "dimensions"
    );
  }
  const auto dimensions = static_cast<std::size_t>(wanted);
  if (request.inputs.size() * dimensions > kMostNumbers) {
    throw ApiError(
        400,
        fmt::format(
            "'input' asks for {} vectors of {} numbers: at most {} vectors of "
            "this size are made at once",
            request.inputs.size(), dimensions, kMostNumbers / dimensions
        ),
        "input"
    );
  }
  return dimensions;
}

}  // namespace

EmbeddingPlan plan_embeddings(
    const ServedModel& model,
    const EmbeddingRequest& request,
    Effort& effort
) {
  EmbeddingPlan plan;
  plan.model = request.model;
  plan.base64 = request.base64;
  plan.dimensions = dimensions_of(model, request);
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const auto where = request.inputs.size() == 1 ? std::string("input")
                                                  : fmt::format("input[{}]", i);
    const auto* text = std::get_if<std::string>(&request.inputs[i]);
    effort.spend(text == nullptr ? 1 : 1 + text->size());
    infer::Request& one = plan.requests.emplace_back();
    one.prompt = ids_of(model, request.inputs[i], where);
    one.max_tokens = 0;
    one.adapter = model.adapter;
    one.pooling = model.pooling;
  }
  return plan;
}

}  // namespace hearth::serve
