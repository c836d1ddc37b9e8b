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
  std::string quant = "none";
  bool dense = false;
  // Whether packed weights that `hearth preload` has kept are used.
  bool packed = true;
  // Whether tensors that nothing uses are told of; once is enough where a model
  // is loaded twice.
  bool warns = true;
  // How bytes come in, where a command lets its user say so.
  std::optional<io::ReadMode> read_mode;

  // many: the command takes adapters of its own, by name.
  enum class Adapter : unsigned char { one, many };

  void declare(Args& args, Adapter adapters = Adapter::one);
  // As declare(), for a command that may be called without a model.
  void declare_optional(Args& args);
  // Which model and tokenizer alone, for commands that do not run it.
  void declare_source(Args& args, Adapter adapters = Adapter::one);
  // How it is to be loaded, progress aside.
  models::LoadOptions options() const;
  // Chooses the device and loads, with progress. load_ms receives the time.
  // `ready` is called before the weights are read.
  infer::TextModel load(
      const Context& context,
      double* load_ms,
      const infer::TextReady& ready = {}
  ) const;
  // Throws as load() does where a look at the files' heads is enough.
  void check_opens() const;
  // Takes the model's files, and what is packed of them, out of the page cache:
  // the next load comes from disk. Throws IoError.
  void drop_page_cache(const Context& context) const;
  // Names, shapes, adapters and the text side; weights stay in the file.
  infer::TextModel describe(const Context& context) const;

 private:
  void declare_beside(Args& args, Adapter adapters);
  void declare_numbers(Args& args);
  infer::TextModel load_text(
      const models::LoadOptions& options,
      const infer::TextReady& ready = {}
  ) const;
};

// The folder in which packed weights are kept.
std::string packed_folder();

}  // namespace hearth::cli
