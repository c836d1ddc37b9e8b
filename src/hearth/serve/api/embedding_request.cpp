#include "hearth/serve/api/embedding_request.h"

#include <fmt/format.h>

namespace hearth::serve {

EmbeddingRequest parse_embedding_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  EmbeddingRequest out;
  out.model = fields.need_text("model");
  out.inputs = read_texts(fields, "input");
  const auto most = static_cast<std::size_t>(limits.max_inputs);
  if (out.inputs.empty() || out.inputs.size() > most) {
    fields.fail(
        "input",
        fmt::format("must have 1 to {} texts, got {}", most, out.inputs.size())
    );
  }
  const auto encoding = fields.text("encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64") {
    fields.fail("encoding_format", "must be float or base64");
  }
  out.base64 = encoding == "base64";
  if (const auto n = fields.integer("dimensions", 1, INT32_MAX)) {
    out.dimensions = static_cast<int>(*n);
  }
  read_labels(fields, limits.strict);
  fields.finish();
  return out;
}

}  // namespace hearth::serve
