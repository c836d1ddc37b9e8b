#pragma once
// One step of decoding as a function of arrays: a token of each of many
// sequences, at places of their own. Compiled once for each form and each
// number of rows and pages; whoever calls rounds those up, so that they are
// few.
#include <map>

#include "hearth/infer/graph/device_pages.h"
#include "hearth/models/load.h"
#include "hearth/nn/lora.h"

namespace hearth::infer {

using Arrays = std::vector<mx::array>;

// What a step gives:
enum class StepForm : unsigned char {
  logits,  // float32 [rows, vocabulary]; then states, float32 [rows, width]
  likely,  // chosen tokens
  drawn,   // the same, drawn as Draw says
  ranked,  // the same, where only the likeliest are drawn from
};

// Arrays of a step, all of as many rows.
struct StepRows {
  mx::array ids, lengths;        // int32 [rows]
  mx::array pages;               // int32 [rows, most]
  std::vector<mx::array> drawn;  // of forms that draw: as draw_rows()
};
// Chosen tokens, what the next step feeds, and where it stands.
struct ChosenRows {
  mx::array tokens;        // uint32 [rows], for the host alone
  mx::array ids, lengths;  // int32 [rows]
};

class DecodeStep {
 public:
  // `compile`: as a GPU has it; a CPU would call a C++ compiler.
  DecodeStep(
      const models::LoadedModel& model,
      const DevicePages& pages,
      bool compile
  );

  // Logits and states; `lora` may be null.
  Arrays logits(const StepRows& rows, const nn::LoraSet* lora);
  ChosenRows choose(
      const StepRows& rows,
      StepForm form,
      const nn::LoraSet* lora
  );

  // Rounds up to what steps are compiled for.
  static int rows_for(int rows);
  int pages_for(int tokens) const;

 private:
  const models::LoadedModel& model_;
  const DevicePages& pages_;
  bool compile_;
  int generation_ = 0;
  using Function = std::function<Arrays(const Arrays&)>;
  std::map<std::pair<StepForm, const nn::LoraSet*>, Function> compiled_;

  Arrays run(const StepRows& rows, StepForm form, const nn::LoraSet* lora);
  Arrays build(const Arrays& in, StepForm form, const nn::LoraSet* lora) const;
};

}  // namespace hearth::infer
