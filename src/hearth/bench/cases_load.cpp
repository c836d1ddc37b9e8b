// Loading a model: from the disk, from the page cache, rounded on the way in,
// and from packed weights. Rates are of the model's own bytes.
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/file_handle.h"
#include "hearth/bench/cases.h"
#include "hearth/models/model_section.h"
#include "hearth/models/packed_cache.h"
#include "hearth/models/quant_target.h"
#include "hearth/models/save.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;
namespace mx = mlx::core;

models::DecoderConfig description() {
  models::ModelSection s;
  s.dim = 1024, s.layers = 10, s.heads = 16;
  return models::new_model(s, 16000, 512);
}

// Some 280 MB in four shards; goes away with its last user.
class RandomModel {
 public:
  explicit RandomModel(std::uint64_t seed)
      : root_(
            fs::temp_directory_path() /
            fmt::format("hearth_bench_load_{}", ::getpid())
        ) {
    const auto described = description();
    models::Decoder decoder(described);
    for (nn::Weight* p : decoder.parameters().all()) {
      nn::initialize(*p, seed, described.layers);
      bytes_ += 2 * p->elements();
    }
    io::HfFolderOptions options;
    options.shard_bytes = bytes_ / 4 + 1;
    options.force = true;
    io::write_hf_folder(
        path(), models::config_json(described), Json::object(),
        models::tensors_to_write(decoder, mx::bfloat16), options
    );
  }
  ~RandomModel() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  std::string path() const { return (root_ / "model").string(); }
  std::string packed() const { return (root_ / "packed").string(); }
  std::size_t bytes() const { return bytes_; }

  // Out of the page cache, both.
  void cool() const {
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (!entry.is_regular_file()) continue;
      const auto file =
          FileHandle::open(entry.path().string(), O_RDONLY, "read");
      file.sync();
#ifdef POSIX_FADV_DONTNEED
      posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
#endif
    }
  }

 private:
  fs::path root_;
  std::size_t bytes_ = 0;
};

// One model for all cases of a run, as long as one of them needs it.
std::shared_ptr<RandomModel> shared_model(std::uint64_t seed) {
  static std::weak_ptr<RandomModel> last;
  auto model = last.lock();
  if (!model) {
    model = std::make_shared<RandomModel>(seed);
    last = model;
  }
  return model;
}

struct LoadCase {
  const char* name;
  const char* quant;
  bool cold, packed;
};

void pack(const RandomModel& model, models::LoadOptions options) {
  options.packed_cache.clear();
  const auto loaded = models::load_model(model.path(), options);
  models::PackedCache(model.packed())
      .store(
          loaded, models::packed_variant(options, loaded.compute),
          models::content_hash(*loaded.source, io::ReadMode::mapped)
      );
}

BenchCase load_case(const CaseContext& context, const LoadCase& wanted) {
  BenchCase c;
  c.name = wanted.name;
  c.unit = "GB/s";
  c.repeats = 5;
  const double disk =
      context.peaks ? context.peaks->disk_read_gb_s.value_or(0) : 0;
  if (wanted.cold && !wanted.packed) c.peak = disk;
  // The size is the shape's, known before there is a file.
  c.work = 0;
  const models::Decoder shape(description());
  for (const nn::Weight* p : shape.parameters().all()) {
    c.work += 2 * static_cast<double>(p->elements());
  }
  c.prepare = [wanted, disk, seed = context.seed] {
    const auto model = shared_model(seed);
    models::LoadOptions options;
    options.quantize = models::parse_quant_target(wanted.quant);
    options.machine = [disk](models::ReadFacts& facts) {
      facts.disk_bytes_per_second = disk * 1e9;
    };
    if (wanted.packed) {
      options.packed_cache = model->packed();
      pack(*model, options);
    }
    return Timed(
        [model, options] { models::load_model(model->path(), options); },
        [model, cold = wanted.cold] {
          if (cold) model->cool();
        }
    );
  };
  return c;
}

}  // namespace

std::vector<BenchCase> load_cases(const CaseContext& context) {
  static constexpr LoadCase kCases[] = {
      {"load bf16 from disk", "none", true, false},
      {"load bf16 from the page cache", "none", false, false},
      {"load bf16 to 4 bits from disk", "4", true, false},
      {"load bf16 to 4 bits from the page cache", "4", false, false},
      {"load bf16 packed, from disk", "none", true, true},
      {"load bf16 packed, from the page cache", "none", false, true},
      {"load 4 bits packed, from disk", "4", true, true},
      {"load 4 bits packed, from the page cache", "4", false, true},
  };
  std::vector<BenchCase> out;
  for (const LoadCase& c : kCases) out.push_back(load_case(context, c));
  return out;
}

}  // namespace hearth::bench
