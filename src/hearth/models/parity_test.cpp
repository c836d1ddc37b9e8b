// Every family and option against transformers: the hidden states after each
// block and the logits, from the small random models in tests/golden/models.
// `ctest -L models -V` prints the table.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/base/json.h"
#include "hearth/io/safetensors.h"
#include "hearth/models/family.h"
#include "hearth/models/load.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(HEARTH_SOURCE_DIR) / "tests/golden/models";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

mx::array expected(const io::SafetensorsFile& file, const std::string& name) {
  const auto all = file.tensors();
  const auto t = std::ranges::find(all, name, &io::TensorInfo::name);
  if (t == all.end()) throw std::runtime_error("no " + name);
  mx::Shape shape;
  for (const auto n : t->shape) shape.push_back(static_cast<int>(n));
  const auto bytes = file.bytes(*t);
  if (t->type == io::TensorType::i32) {
    return mx::array(
        reinterpret_cast<const std::int32_t*>(bytes.data()), shape
    );
  }
  return mx::array(reinterpret_cast<const float*>(bytes.data()), shape);
}

float largest_difference(const mx::array& a, const mx::array& b) {
  auto d = mx::max(mx::abs(mx::subtract(mx::astype(a, mx::float32), b)));
  return d.item<float>();
}

float mean_square_difference(const mx::array& a, const mx::array& b) {
  auto d = mx::mean(mx::square(mx::subtract(mx::astype(a, mx::float32), b)));
  return d.item<float>();
}

nn::Pass pass_for(const mx::array& ids, mx::Dtype dtype) {
  nn::Pass pass;
  pass.dtype = dtype;
  pass.positions = plain_positions(ids.shape(0), ids.shape(1));
  pass.length = ids.shape(1);
  return pass;
}

// One line of the table; negative where the test did not run.
struct Errors {
  std::string family;
  float hidden = -1, logits = -1, decode = -1, packed = -1;
  float bf16 = -1, theirs = -1;
};

class Table : public testing::Environment {
 public:
  Errors& of(const std::string& name) { return rows_[name]; }

  void TearDown() override {
    if (rows_.empty()) return;
    fmt::print(
        "\n{:20} {:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}\n"
        "{:20} {:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}\n",
        "", "", "fp32 max", "", "fp32 max", "fp32 max", "bf16 rms", "bf16 rms",
        "case", "family", "hidden", "logits", "decode", "packed", "logits",
        "transformers"
    );
    const auto number = [](float v) {
      return v < 0 ? std::string("-") : fmt::format("{:.1e}", v);
    };
    for (const auto& [name, e] : rows_) {
      fmt::print(
          "{:20} {:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}\n", name, e.family,
          number(e.hidden), number(e.logits), number(e.decode),
          number(e.packed), number(e.bf16), number(e.theirs)
      );
    }
  }

 private:
  std::map<std::string, Errors> rows_;
};

Table& table() {
  static auto* const made = dynamic_cast<Table*>(
      testing::AddGlobalTestEnvironment(new Table)  // GoogleTest deletes it
  );
  return *made;
}
const Table& kMadeAtStart = table();

// A case, and which form of the ops computes it: our kernels, or what a GPU
// runs, on a CPU.
using CaseOnFace = std::tuple<std::string, ops::Face>;

std::string test_name(const testing::TestParamInfo<CaseOnFace>& item) {
  auto [name, face] = item.param;
  std::ranges::replace(name, '-', '_');
  return face == ops::Face::gpu ? name + "_as_on_a_gpu" : name;
}

class Parity : public testing::TestWithParam<CaseOnFace> {
 protected:
  const ops::ScopedFace face{std::get<1>(GetParam())};
  const bool on_gpu = std::get<1>(GetParam()) == ops::Face::gpu;
  const std::string name = std::get<0>(GetParam());
  fs::path folder = kModels / name;
  std::shared_ptr<const io::SafetensorsFile> want_file =
      io::SafetensorsFile::open((folder / "expected.safetensors").string());
  const io::SafetensorsFile& want = *want_file;
  mx::array ids = expected(want, "input_ids");
  Errors& errors = table().of(on_gpu ? name + " gpu" : name);

  LoadedModel load(mx::Dtype compute, Use use = Use::inference) {
    return load_model(folder.string(), {.use = use, .compute = compute});
  }
};

TEST_P(Parity, Float32LayerByLayer) {
  const auto model = load(mx::float32);
  std::vector<mx::array> states;
  const auto pass = pass_for(ids, mx::float32);
  const auto h = model.decoder->hidden(ids, pass, &states);
  EXPECT_TRUE(model.unused.empty()) << model.unused.front();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto w = expected(want, fmt::format("hidden.{}", i));
    const float error = largest_difference(states[i], w);
    EXPECT_LE(error, 1e-4) << "after block " << i;
    errors.hidden = std::max(errors.hidden, error);
  }
  errors.family = model.decoder->config().family;
  errors.logits = largest_difference(
      model.decoder->logits(h, pass), expected(want, "logits")
  );
  EXPECT_LE(errors.logits, 1e-4);
}

TEST_P(Parity, Bfloat16IsAsNearToFloat32AsTransformers) {
  const auto model = load(mx::bfloat16);
  const auto pass = pass_for(ids, mx::bfloat16);
  const auto logits =
      model.decoder->logits(model.decoder->hidden(ids, pass), pass);
  const auto exact = expected(want, "logits");
  const auto theirs = expected(want, "logits_bf16");
  const float own = std::sqrt(mean_square_difference(logits, exact));
  const float limit = std::sqrt(mean_square_difference(theirs, exact));
  errors.bf16 = own, errors.theirs = limit;
  // MLX's graphs of norms and attention, which a CPU runs in place of a GPU's
  // fused kernels, round after each step.
  EXPECT_LE(own, on_gpu ? 1.1f * limit : limit);
}

TEST_P(Parity, TrainingWeightsComputeTheSame) {
  const auto model = load(mx::float32, Use::training);
  const auto pass = pass_for(ids, mx::float32);
  const auto logits =
      model.decoder->logits(model.decoder->hidden(ids, pass), pass);
  EXPECT_LE(largest_difference(logits, expected(want, "logits")), 1e-4);
}

TEST_P(Parity, StepByStepAgreesWithTheWhole) {
  const auto model = load(mx::float32);
  const auto whole = expected(want, "logits");
  const auto& c = model.decoder->config();
  if (c.rope && c.rope->scaling == ops::RopeScaling::dynamic) {
    GTEST_SKIP() << "dynamic scaling rotates keys by the length when they come";
  }
  const int n = ids.shape(1), vocab = whole.shape(2);
  for (int row = 0; row < ids.shape(0); ++row) {
    auto caches = model.decoder->make_caches(mx::float32);
    // A prompt of several tokens, then one by one.
    for (int from = 0; from < n;) {
      const int to = from == 0 ? 7 : from + 1;
      const auto part = mx::slice(ids, {row, from}, {row + 1, to});
      nn::Pass pass = pass_for(part, mx::float32);
      pass.positions = plain_positions(1, to - from, from);
      pass.length = to;
      pass.caches = &caches;
      const auto logits =
          model.decoder->logits(model.decoder->hidden(part, pass), pass);
      const auto w = mx::slice(whole, {row, from, 0}, {row + 1, to, vocab});
      const float error = largest_difference(logits, w);
      ASSERT_LE(error, 1e-4) << "token " << from;
      errors.decode = std::max(errors.decode, error);
      from = to;
    }
  }
}

TEST_P(Parity, PackedAndPaddedDocumentsAgreeWithSingleOnes) {
  const auto model = load(mx::float32);
  const auto& c = model.decoder->config();
  if (c.rope && c.rope->scaling == ops::RopeScaling::dynamic) {
    GTEST_SKIP() << "dynamic scaling depends on the length of the row";
  }
  // Both documents in one row, then padding.
  const int n = ids.shape(1), pad = 3, row = 2 * n + pad;
  std::vector<int> joined, segments, positions;
  auto flat = mx::contiguous(ids);
  flat.eval();
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < n; ++i) {
      joined.push_back(flat.data<int>()[d * n + i]);
      segments.push_back(d + 1);
      positions.push_back(i);
    }
  }
  joined.resize(static_cast<std::size_t>(row), 0);
  segments.resize(static_cast<std::size_t>(row), 0);
  positions.resize(static_cast<std::size_t>(row), 0);
  nn::Pass pass = pass_for(ids, mx::float32);
  pass.positions = mx::array(positions.data(), {1, row});
  pass.segments = mx::array(segments.data(), {1, row});
  const auto h =
      model.decoder->hidden(mx::array(joined.data(), {1, row}), pass);
  const auto logits = model.decoder->logits(h, pass);
  const auto whole = expected(want, "logits");
  for (int d = 0; d < 2; ++d) {
    const int vocab = whole.shape(2);
    const auto got = mx::slice(logits, {0, d * n, 0}, {1, (d + 1) * n, vocab});
    const auto w = mx::slice(whole, {d, 0, 0}, {d + 1, n, vocab});
    const float error = largest_difference(got, w);
    EXPECT_LE(error, 1e-4) << "document " << d;
    errors.packed = std::max(errors.packed, error);
  }
}

// Cases that come with the config.json of an older transformers too.
std::vector<std::string> cases_of_two_spellings() {
  auto names = cases();
  std::erase_if(names, [](const auto& name) {
    return !fs::exists(kModels / name / "config-v4.json");
  });
  return names;
}

class Spelling : public testing::TestWithParam<std::string> {};

TEST_P(Spelling, OlderConfigMeansTheSame) {
  const fs::path folder = kModels / GetParam();
  const auto older = folder / "config-v4.json";
  const auto a = parse_config(
      read_json_file((folder / "config.json").string()), "config.json"
  );
  const auto b = parse_config(read_json_file(older.string()), "config-v4.json");
  EXPECT_EQ(a.windows, b.windows);
  ASSERT_TRUE(a.rope && b.rope);
  EXPECT_EQ(
      ops::rope_frequencies(*a.rope).inverse,
      ops::rope_frequencies(*b.rope).inverse
  );
  ASSERT_EQ(a.local_rope.has_value(), b.local_rope.has_value());
  if (a.local_rope) {
    EXPECT_EQ(
        ops::rope_frequencies(*a.local_rope).inverse,
        ops::rope_frequencies(*b.local_rope).inverse
    );
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    Parity,
    testing::Combine(
        testing::ValuesIn(cases()),
        testing::Values(ops::Face::kernels, ops::Face::gpu)
    ),
    test_name
);
INSTANTIATE_TEST_SUITE_P(
    Models,
    Spelling,
    testing::ValuesIn(cases_of_two_spellings()),
    [](const auto& item) {
      std::string name = item.param;
      std::ranges::replace(name, '-', '_');
      return name;
    }
);

}  // namespace
}  // namespace hearth::models
