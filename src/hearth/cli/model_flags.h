#pragma once
// The flags of every command that runs a model: which one, with which
// tokenizer, in which number types.
#include <memory>
#include <optional>
#include <string>

#include "hearth/base/progress.h"
#include "hearth/cli/command.h"
#include "hearth/cli/inputs.h"
#include "hearth/infer/text_model.h"

namespace hearth::cli {

struct ModelFlags {
  std::string model, tokenizer, adapter;
  std::string dtype = "auto";
  bool dense = false;

  // many: the command takes adapters of its own, by name.
  enum class Adapter : unsigned char { one, many };

  void declare(Args& args, Adapter adapters = Adapter::one);
  // Which model and tokenizer alone, for commands that do not run it.
  void declare_source(Args& args, Adapter adapters = Adapter::one);
  // Chooses the device and loads, with progress. load_ms receives the time.
  infer::TextModel load(const Context& context, double* load_ms) const;
  // Names, shapes, adapters and the text side; weights stay in the file.
  infer::TextModel describe(const Context& context) const;

 private:
  infer::TextModel load_text(const models::LoadOptions& options) const;
};

double milliseconds_now();

}  // namespace hearth::cli
