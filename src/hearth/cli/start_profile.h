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
  std::size_t model_bytes = 0;                 // held when it is loaded
  std::size_t peak_charged = 0;   // most that was accounted at once
  std::size_t peak_resident = 0;  // as the system counts, mapped pages too
};

std::string to_text(const StartProfile& p);
Json to_json(const StartProfile& p);
// A page that needs nothing else.
std::string to_html(const StartProfile& p);

}  // namespace hearth::cli
