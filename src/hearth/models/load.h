#pragma once
// Fills a decoder's parameters from a model on disk: converts, quantises
// nothing, packs for the kernels, one tensor at a time. Weights are checked to
// be finite and of the right shape before they are used.
#include <memory>
#include <string>
#include <vector>

#include "hearth/io/model_source.h"
#include "hearth/models/decoder.h"

namespace hearth::models {

// What the weights are for decides which copies are held.
enum class Use : unsigned char {
  inference,    // as products read them, nothing else
  frozen_base,  // the same with what gradients of inputs need: LoRA, QLoRA
  training,     // float32 masters, packed in both orders
  described,    // none: names and shapes alone, weights stay in the file
};

struct LoadOptions {
  Use use = Use::inference;
  // Of products; none: float32 for a float32 checkpoint, else bfloat16.
  std::optional<mx::Dtype> compute;
  // Quantised tensors stay so; otherwise they are widened. Training widens.
  bool keep_quantized = true;
  // Called after each parameter, for progress.
  std::function<void(std::size_t bytes_read)> progress;
};

struct LoadedModel {
  std::shared_ptr<const io::ModelSource> source;
  std::unique_ptr<Decoder> decoder;
  mx::Dtype compute = mx::bfloat16;
  LoadOptions options;  // what it was loaded with
  // Tensors in the file that the model has no use for.
  std::vector<std::string> unused;
};

// Throws FormatError, one line with the tensor and the file, when something is
// missing, misshapen, not finite or not understood.
LoadedModel load_model(
    std::shared_ptr<const io::ModelSource> source,
    const LoadOptions& options = {}
);
LoadedModel load_model(
    const std::string& path,
    const LoadOptions& options = {}
);

// A parameter's numbers as the source holds them, widened to float32.
mx::array read_parameter(const io::ModelSource& source, const nn::Parameter& p);

// Reads one parameter anew, as load_model() did.
void reload(LoadedModel& model, nn::Parameter& p);
// Puts these float32 numbers in a parameter's place, dense and ready.
void replace(LoadedModel& model, nn::Parameter& p, const mx::array& value);

// The norm of each row of a matrix as the source holds it, float32.
mx::array row_norms(const io::ModelSource& source, const nn::Parameter& p);

// What stands for the model's config in errors.
std::string config_name(const io::ModelSource& source);

// Makes matrices ready for the kernels as `use` wants them, after their values
// were set. A GPU has no packed copies.
void prepare(Decoder& decoder, mx::Dtype compute, Use use);
// The same for one of its parameters.
void prepare(
    const Decoder& decoder,
    nn::Parameter& p,
    mx::Dtype compute,
    Use use
);

}  // namespace hearth::models
