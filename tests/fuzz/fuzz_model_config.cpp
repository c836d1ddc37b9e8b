// Any text as config.json or adapter_config.json: read, or a FormatError.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/io/model_facts.h"
#include "hearth/io/peft_config.h"
#include "hearth/io/strict_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view text(reinterpret_cast<const char*>(data), n);
  hearth::Json config;
  try {
    config = hearth::io::parse_config(text, "fuzz");
  } catch (const hearth::FormatError&) {
    return 0;
  }
  try {
    (void)hearth::io::read_model_facts(config, "fuzz").kv_bytes_per_token();
  } catch (const hearth::FormatError&) {
  }
  try {
    const auto adapter = hearth::io::parse_peft_config(config, "fuzz");
    (void)adapter.scale_of("model.layers.0.self_attn.q_proj");
    (void)hearth::io::to_json(adapter);
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
