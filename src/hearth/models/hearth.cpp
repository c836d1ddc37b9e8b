// Our own architecture: Llama with a partial gate, which no stock one holds.
#include "hearth/base/error.h"
#include "hearth/models/family.h"

namespace hearth::models {

DecoderConfig parse_hearth(ConfigKeys& keys) {
  DecoderConfig c = parse_llama(keys);
  const Json& gate = keys.raw("gate");
  if (gate.is_null()) return c;
  nn::GateConfig parsed;
  ConfigReader reader(parsed);
  try {
    reader.apply(parse_yaml(to_json_line(gate), keys.file()));
  } catch (const UsageError& e) {
    keys.refuse("gate", e.what());
  }
  c.gate = parsed;
  return c;
}

}  // namespace hearth::models
