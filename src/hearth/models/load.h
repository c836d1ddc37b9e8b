#pragma once
// Fills a decoder's parameters from a model on disk: converts, quantises where
// asked, packs for the kernels, a slice of a tensor at a time while the next
// ones are read. Beside the model itself a load holds those few slices, never
// a second copy of a tensor. Weights are checked to be finite and of the right
// shape before they are used.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hearth/io/model_source.h"
#include "hearth/models/blueprint.h"
#include "hearth/models/decoder.h"
#include "hearth/models/load_report.h"
#include "hearth/models/read_choice.h"
#include "hearth/models/weight_plan.h"

namespace hearth::models {

struct LoadOptions {
  Use use = Use::inference;
  // Of products; none: float32 for a float32 checkpoint, else bfloat16.
  std::optional<mx::Dtype> compute;
  // Quantised tensors stay so; otherwise they are widened. Training widens.
  bool keep_quantized = true;
  // Dense matrices are rounded to these formats on the way in, but for
  // training. Those whose rows a format cannot hold stay dense
  // (LoadReport::kept_dense), and so does a table that is gathered from; as a
  // tied head it is both.
  QuantRules quantize;
  // For training: which matrices have packed copies.
  PackedCopies copies = PackedCopies::all;
  // How bytes come in; none: choose_read() says.
  std::optional<io::ReadMode> read_mode;
  // Asked for free memory and the disk's rate, should it matter.
  std::function<void(ReadFacts&)> machine;
  // A folder of packed weights (models/packed_cache.h) to look in before the
  // model itself is read; empty: none. For inference on a CPU.
  std::string packed_cache;
  // Whether tensors that the model has no use for are a warning. What others
  // store of their own (masks, frequencies, a tied head again) never is.
  bool warn_unused = true;
  // Told, in a line, what became of packed weights that could not be used.
  std::function<void(const std::string&)> note;
  // What is read and converted at a time, and a few of them ahead. As large as
  // reads are when `doctor` measures the disk.
  std::size_t slice_bytes = std::size_t{4} << 20;
  // For tests: read no faster than this. 0: as fast as it goes.
  double pace = 0;
  // Called after each slice.
  std::function<void(const LoadStep&)> progress;
};

struct LoadedModel {
  std::shared_ptr<const io::ModelSource> source;
  std::unique_ptr<Decoder> decoder;
  mx::Dtype compute = mx::bfloat16;
  LoadOptions options;  // what it was loaded with
  // Tensors in the file that the model has no use for.
  std::vector<std::string> unused;
  LoadReport report;
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

// The format of each matrix that such a load would hold quantised, by the
// parameter's name: stored so, or rounded on the way in. Nothing is read.
std::map<std::string, kernels::QuantFormat> quantized_formats(
    const io::ModelSource& source,
    const Blueprint& blueprint,
    const LoadOptions& options
);

// A parameter's numbers as the source holds them, widened to float32.
mx::array read_parameter(const io::ModelSource& source, const nn::Weight& p);

// Reads one parameter anew, as load_model() did.
void reload(LoadedModel& model, nn::Weight& p);
// Puts these float32 numbers in a parameter's place, dense and ready.
void replace(LoadedModel& model, nn::Weight& p, const mx::array& value);

// The norm of each row of a matrix as products read it, float32: of one that
// was rounded, the rounded weights'.
mx::array row_norms(const io::ModelSource& source, const nn::Weight& p);

// What stands for the model's config in errors.
std::string config_name(const io::ModelSource& source);

// Makes matrices ready for the kernels as `use` wants them, after their values
// were set. A GPU has no packed copies.
void prepare(
    Decoder& decoder,
    mx::Dtype compute,
    Use use,
    PackedCopies copies = PackedCopies::all
);

}  // namespace hearth::models
