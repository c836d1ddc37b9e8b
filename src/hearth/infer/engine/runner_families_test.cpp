// Every family on the runner without a graph, against what transformers made of
// the small random models in tests/golden/models, and against the graph.
#include <gtest/gtest.h>

#include "hearth/infer/cpu/runner.h"
#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/io/safetensors.h"

namespace hearth::infer {
namespace {

// Two sequences and the logits after each of their tokens.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(
            io::SafetensorsFile::open(
                golden_folder(name) + "/expected.safetensors"
            )
        ),
        ids_(numbers<std::int32_t>("input_ids")),
        logits_(numbers<float>("logits")),
        theirs_(numbers<float>("logits_bf16")) {}

  int length() const { return static_cast<int>(ids_.size() / 2); }
  std::span<const std::int32_t> ids(int row, int from, int to) const {
    return std::span(ids_).subspan(at(row, from), at(row, to) - at(row, from));
  }
  std::span<const float> logits(int row, int from, int to) const {
    const std::size_t vocab = logits_.size() / ids_.size();
    return std::span(logits_).subspan(
        at(row, from) * vocab, (at(row, to) - at(row, from)) * vocab
    );
  }
  std::span<const float> all_logits() const { return logits_; }
  // Of a bfloat16 run of theirs.
  std::span<const float> all_narrow_logits() const { return theirs_; }

 private:
  std::shared_ptr<const io::SafetensorsFile> file_;
  std::vector<std::int32_t> ids_;
  std::vector<float> logits_, theirs_;

  std::size_t at(int row, int token) const {
    return static_cast<std::size_t>(row * length() + token);
  }
  template <class T>
  std::vector<T> numbers(const std::string& name) const {
    const auto all = file_->tensors();
    const auto t = std::ranges::find(all, name, &io::TensorInfo::name);
    if (t == all.end()) throw std::runtime_error("no " + name);
    const auto bytes = file_->bytes(*t);
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    return {first, first + bytes.size() / sizeof(T)};
  }
};

std::unique_ptr<Runner> in_pages(
    const models::LoadedModel& model,
    RunnerOptions options = {}
) {
  options.page_tokens = 16;
  auto runner = make_runner(model, options);
  EXPECT_NE(dynamic_cast<CpuRunner*>(runner.get()), nullptr)
      << "the graph was picked";
  return runner;
}

class Family : public testing::TestWithParam<std::string> {
 protected:
  Golden golden{GetParam()};
  const int n = golden.length();

  models::LoadedModel load(mx::Dtype compute) const {
    return load_golden(GetParam(), compute);
  }
  // Both sequences in one step: a row of logits for each token.
  std::span<const float> whole(Runner& runner) const {
    return runner.step(
        {{{runner.open(), golden.ids(0, 0, n), LogitsOf::all},
          {runner.open(), golden.ids(1, 0, n), LogitsOf::all}}}
    );
  }
};

TEST_P(Family, WholeSequencesTogether) {
  const auto model = load(mx::float32);
  const auto runner = in_pages(model);
  EXPECT_LE(largest_error(whole(*runner), golden.all_logits()), 1e-4f);
}

// So many rows that threads share products out another way than few rows'.
TEST_P(Family, ManySequencesTogether) {
  const auto model = load(mx::float32);
  const auto runner = in_pages(model);
  std::vector<RunnerPart> parts;
  std::vector<float> want;
  constexpr int kCopies = 3;
  for (int i = 0; i < 2 * kCopies; ++i) {
    parts.push_back({runner->open(), golden.ids(i % 2, 0, n), LogitsOf::all});
    const auto logits = golden.logits(i % 2, 0, n);
    want.insert(want.end(), logits.begin(), logits.end());
  }
  EXPECT_LE(largest_error(runner->step(parts), want), 1e-4f);
}

TEST_P(Family, StepByStepBesideOneOfAnotherLength) {
  const auto model = load(mx::float32);
  const auto runner = in_pages(model);
  struct Row {
    SequenceId id;
    int at, to;  // fed so far, and after the next step
  };
  Row rows[] = {{runner->open(), 0, 7}, {runner->open(), 0, 2}};
  while (rows[1].at < n) {
    std::vector<RunnerPart> parts;
    std::vector<float> want;
    for (int r = 0; r < 2; ++r) {
      const auto [id, at, to] = rows[r];
      if (at == to) continue;
      parts.push_back({id, golden.ids(r, at, to), LogitsOf::all});
      const auto logits = golden.logits(r, at, to);
      want.insert(want.end(), logits.begin(), logits.end());
    }
    ASSERT_LE(largest_error(runner->step(parts), want), 1e-4f)
        << "after " << rows[0].at << " and " << rows[1].at << " tokens";
    for (Row& row : rows) {
      row.at = row.to, row.to = std::min(row.to + 1, n);
    }
  }
}

TEST_P(Family, InPiecesOfAPrompt) {
  const auto model = load(mx::float32);
  const auto runner = in_pages(model);
  const auto id = runner->open();
  // Longer pieces than those whose queries read pages as they lie, but for the
  // last.
  for (const auto& [from, to] : {std::pair{0, 10}, {10, 20}, {20, 24}}) {
    const auto got =
        runner->step({{{id, golden.ids(0, from, to), LogitsOf::all}}});
    EXPECT_LE(largest_error(got, golden.logits(0, from, to)), 1e-4f) << from;
  }
}

TEST_P(Family, PagesServeAnotherRunner) {
  const auto model = load(mx::float32);
  const auto one = in_pages(model), other = in_pages(model);
  const auto from = one->open(), to = other->open();
  constexpr int kPage = 16;
  one->step({{{from, golden.ids(0, 0, kPage), LogitsOf::none}}});
  const auto bytes = one->page_bytes(from);
  const auto room = other->restore(to, kPage);
  ASSERT_EQ(bytes.size(), 1u);
  ASSERT_EQ(room.size(), 1u);
  std::ranges::copy(bytes[0], room[0].begin());
  const auto got =
      other->step({{{to, golden.ids(0, kPage, n), LogitsOf::all}}});
  EXPECT_LE(largest_error(got, golden.logits(0, kPage, n)), 1e-4f);
}

double root_mean_square(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::pow(double{a[i]} - double{b[i]}, 2);
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

float size_of(std::span<const float> x) {
  const std::vector<float> none(x.size());
  return static_cast<float>(root_mean_square(x, none));
}

TEST_P(Family, Bfloat16IsAsNearToFloat32AsTransformers) {
  const auto model = load(mx::bfloat16);
  const auto runner = in_pages(model);
  const auto exact = golden.all_logits();
  EXPECT_LE(
      root_mean_square(whole(*runner), exact),
      root_mean_square(golden.all_narrow_logits(), exact)
  );
}

// Of keys and values alone, in units of the logits' root mean square.
float room_for(KvType kv) {
  return kv == KvType::int8 ? 0.1f : kv == KvType::bfloat16 ? 0.05f : 0.01f;
}

TEST_P(Family, NarrowKeysAndValues) {
  const auto model = load(mx::float32);
  const auto exact = golden.all_logits();
  for (const KvType kv :
       {KvType::bfloat16, KvType::float16, KvType::int8, KvType::float32}) {
    const float room =
        kv == KvType::float32 ? 1e-4f : size_of(exact) * room_for(kv);
    const auto runner = in_pages(model, {.kv = kv});
    EXPECT_LE(largest_error(whole(*runner), exact), room)
        << static_cast<int>(kv);
    const auto id = runner->open();
    runner->step({{{id, golden.ids(0, 0, n - 1), LogitsOf::none}}});
    const auto last =
        runner->step({{{id, golden.ids(0, n - 1, n), LogitsOf::last}}});
    EXPECT_LE(largest_error(last, golden.logits(0, n - 1, n)), room)
        << static_cast<int>(kv);
  }
}

// In units of the logits' root mean square. Activations in bfloat16 are rounded
// in other places than the graph's are; those in float32 become the same bytes
// but where one was near the middle of two.
float room_for(mx::Dtype compute, QuantProducts products) {
  if (compute == mx::bfloat16) return 0.2f;
  return products == QuantProducts::exact ? 1e-4f : 0.02f;
}

void expect_quantised(const std::string& name, mx::Dtype compute) {
  const auto format = kernels::QuantFormat::gguf(kernels::QuantKind::kQ8_0);
  int count = 0;
  const auto model = quantized_golden(name, format, compute, &count);
  ASSERT_GT(count, 0);
  for (const auto products :
       {QuantProducts::automatic, QuantProducts::int8, QuantProducts::exact}) {
    const auto runner = in_pages(model, {.products = products});
    const auto id = runner->open();
    const Ids ids = prompt(), next{4};
    const auto rows = by_graph(model, ids, next, {.products = products});
    for (const Ids& some : {ids, next}) {
      const auto got = runner->step({{{id, some, LogitsOf::last}}});
      const auto& want = rows[some.size() == 1 ? 1 : 0];
      EXPECT_LT(
          largest_error(got, want) / size_of(want), room_for(compute, products)
      ) << "products "
        << static_cast<int>(products) << ", tokens " << some.size();
    }
  }
}

class QuantisedFamily : public Family {};

TEST_P(QuantisedFamily, InEveryWayOfMultiplying) {
  expect_quantised(GetParam(), mx::float32);
  expect_quantised(GetParam(), mx::bfloat16);
}

TEST_P(Family, InvariantRowsAreTheSameBitForBit) {
  const auto model = load(mx::bfloat16);
  const auto runner = in_pages(model, {.batch_invariant = true});
  std::vector<float> want;
  const auto alone = runner->open();
  for (int i = 0; i < n; ++i) {
    const auto row =
        runner->step({{{alone, golden.ids(1, i, i + 1), LogitsOf::last}}});
    want.insert(want.end(), row.begin(), row.end());
  }
  const auto got = whole(*runner);
  EXPECT_TRUE(std::ranges::equal(got.last(want.size()), want))
      << "largest difference " << largest_error(got.last(want.size()), want);
}

std::vector<std::string> families() {
  auto names = golden_models();
  std::erase_if(names, left_to_the_graph);
  return names;
}

// Those with a matrix that is whole blocks of 32 columns wide.
std::vector<std::string> quantisable_families() {
  auto names = families();
  std::erase(names, "smollm2-shape");
  return names;
}

std::string name_of_family(const testing::TestParamInfo<std::string>& item) {
  return test_name(item.param);
}

INSTANTIATE_TEST_SUITE_P(
    Golden,
    Family,
    testing::ValuesIn(families()),
    name_of_family
);
INSTANTIATE_TEST_SUITE_P(
    Golden,
    QuantisedFamily,
    testing::ValuesIn(quantisable_families()),
    name_of_family
);

TEST(Families, LeftToTheGraph) {
  for (const auto& name : golden_models()) {
    const auto model = load_golden(name, mx::float32);
    const auto runner = make_runner(model);
    EXPECT_EQ(
        dynamic_cast<CpuRunner*>(runner.get()) == nullptr,
        left_to_the_graph(name)
    ) << name;
  }
}

}  // namespace
}  // namespace hearth::infer
