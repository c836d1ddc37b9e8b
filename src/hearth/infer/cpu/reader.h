#pragma once
// Reads the parameters of a loaded model as addresses. A parameter that is
// missing, or held in a form that the kernels here do not read, is no error:
// whole() is false then, and the graph runs the model.
#include <string>

#include "hearth/infer/cpu/model.h"

namespace hearth::infer {

class CpuReader {
 public:
  // Copies of weights that the model holds in another form go to `to`, where it
  // is also noted whether any matrix is quantised.
  CpuReader(
      const models::LoadedModel& model,
      const LoraSets& adapters,
      CpuModel& to
  );

  bool whole() const { return whole_; }

  const float* vector(io::NamedRole part);
  // Both are empty where the model has none.
  CpuNorm norm(io::Role role, int layer = -1);
  // With the bias and what the adapters add.
  CpuMatrix linear(io::Role role, int layer);
  CpuMatrix matrix(const nn::Weight& p, const float* bias = nullptr);
  CpuTable table(io::Role role);

 private:
  const models::LoadedModel& model_;
  const nn::ParameterSet& set_;
  const LoraSets& adapters_;
  CpuModel& to_;
  bool whole_ = true;

  void miss() { whole_ = false; }
  const float* vector(const nn::Weight* p);
  const float* plus_one(const float* weight, std::size_t size);
  CpuLora lora(const nn::LoraSet& set, const std::string& name);
};

}  // namespace hearth::infer
