// Any JSON as a schema: a grammar that some tokens are taken by, or a
// UsageError.
#include <cstddef>
#include <cstdint>

#include "hearth/base/json.h"

#include "grammar_walk.h"

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  hearth_fuzz::walk([&] {
    return hearth::text::grammar_of_schema(
        hearth::parse_json(source, "schema")
    );
  });
  return 0;
}
