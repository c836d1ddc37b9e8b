#pragma once
// One start of a model as `hearth profile load` measures it, and the three ways
// it is shown.
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/models/load_diagnosis.h"
#include "hearth/profile/process_sample.h"

namespace hearth::cli {

struct StartProfile {
  std::string model, quant;
  models::StartFacts facts;
  models::Diagnosis slow;
  std::vector<profile::ProcessSample> memory;  // over time
  // Bytes of the weights, and whether they are pages of a mapped file.
  std::size_t model_bytes = 0;
  bool mapped = false;
  // Accounted for when it is loaded, and at most until then.
  std::size_t held = 0, peak_held = 0;
  // As the system counts, mapped pages too: before, when it is loaded, and at
  // most up to the first token.
  std::size_t resident_before = 0, resident = 0, peak_resident = 0;
  std::size_t anonymous = 0;  // of resident, what is no file's
};

std::string to_text(const StartProfile& p);
Json to_json(const StartProfile& p);
// A page that needs nothing else.
std::string to_html(const StartProfile& p);

}  // namespace hearth::cli
