#pragma once
// The small models of tests/golden/models, and what tests of runners ask of
// them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/infer/graph/model_runner.h"

namespace hearth::infer {

using Ids = std::vector<std::int32_t>;

inline std::string golden_folder(const std::string& name) {
  return HEARTH_SOURCE_DIR "/tests/golden/models/" + name;
}

inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_folder(""))) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Rotary scaling by the length in use rotates a key by when it came: what it is
// has no place in a page that others share. Every other golden model runs
// without a graph on a CPU.
inline bool left_to_the_graph(const std::string& name) {
  return name == "llama-dynamic";
}

inline models::LoadedModel load_golden(
    const std::string& name,
    mx::Dtype compute
) {
  return models::load_model(golden_folder(name), {.compute = compute});
}

// A model's name as GoogleTest takes it.
inline std::string test_name(std::string model) {
  std::ranges::replace(model, '-', '_');
  return model;
}

// Longer than a page, and short enough for the smallest context, 32.
inline Ids prompt(int tokens = 27) {
  Ids ids{3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9};
  for (int i = 0; std::ssize(ids) < tokens; ++i) {
    ids.push_back((7 * i + 3) % 40);
  }
  return ids;
}

inline float largest_error(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float e = std::abs(a[i] - b[i]);
    worst = std::isnan(e) ? INFINITY : std::max(worst, e);
  }
  return worst;
}

// Logits after the prompt and after each of `more` further tokens.
using LogitRows = std::vector<std::vector<float>>;

// By the decoder itself over the whole text, anew for each token: no keys and
// values are kept, so that it shares nothing with a runner.
inline LogitRows by_decoder(
    const models::LoadedModel& model,
    Ids ids,
    const Ids& more
) {
  LogitRows out;
  for (std::size_t i = 0; i <= more.size(); ++i) {
    if (i > 0) ids.push_back(more[i - 1]);
    const auto n = static_cast<int>(ids.size());
    nn::Pass pass;
    pass.dtype = model.compute;
    pass.positions = models::plain_positions(1, n);
    pass.length = n;
    const auto h = model.decoder->hidden(mx::array(ids.data(), {1, n}), pass);
    const auto last = mx::slice(h, {0, n - 1, 0}, {1, n, h.shape(2)});
    auto row = mx::contiguous(
        mx::astype(model.decoder->logits(last, pass), mx::float32)
    );
    row.eval();
    out.emplace_back(row.data<float>(), row.data<float>() + row.size());
  }
  return out;
}

// By the graph's runner over one sequence: for what only a runner has, types
// of keys and values and ways to multiply.
inline LogitRows by_graph(
    const models::LoadedModel& model,
    const Ids& first,
    const Ids& more,
    const RunnerOptions& options = {}
) {
  ModelRunner runner(model, options);
  const auto id = runner.open();
  LogitRows out;
  const auto feed = [&](std::span<const std::int32_t> ids) {
    const auto row = runner.step({{{id, ids, LogitsOf::last}}});
    out.emplace_back(row.begin(), row.end());
  };
  feed(first);
  for (const std::int32_t& next : more) feed({&next, 1});
  return out;
}

// Every projection that the format can hold, rounded to it; how many is left
// in `count`.
inline models::LoadedModel quantized_golden(
    const std::string& name,
    const kernels::QuantFormat& format,
    mx::Dtype compute = mx::bfloat16,
    int* count = nullptr
) {
  auto model = load_golden(name, compute);
  for (nn::Linear* linear : model.decoder->linears()) {
    nn::Weight& p = linear->weight();
    if (p.shape[1] % format.block_columns() != 0) continue;
    const auto w = models::read_parameter(*model.source, p);
    p.set(
        std::make_shared<const ops::QuantizedWeight>(
            ops::QuantizedWeight::quantize(w, format)
        )
    );
    if (count != nullptr) ++*count;
  }
  return model;
}

}  // namespace hearth::infer
