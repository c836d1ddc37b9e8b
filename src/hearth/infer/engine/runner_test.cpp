// Every runner against the decoder over whole texts, which keeps nothing
// between two tokens and knows neither pages nor batches.
#include "hearth/infer/engine/runner.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/infer/cpu/runner.h"
#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/models/adapters.h"

namespace hearth::infer {
namespace {

struct Way {
  std::string model;
  bool graph;
  int page = graph ? 4 : 16;
};

std::string name_of_way(const testing::TestParamInfo<Way>& item) {
  return test_name(item.param.model);
}

class RunnerOf : public testing::TestWithParam<Way> {
 protected:
  std::unique_ptr<Runner> make(
      const models::LoadedModel& model,
      RunnerOptions options = {}
  ) const {
    options.graph = GetParam().graph;
    options.page_tokens = GetParam().page;
    auto runner = make_runner(model, options);
    const bool pages = dynamic_cast<CpuRunner*>(runner.get()) != nullptr;
    EXPECT_NE(pages, GetParam().graph) << "another runner was picked";
    return runner;
  }
};

class RunnerLogitsOf : public RunnerOf {};

TEST_P(RunnerLogitsOf, AreThoseOfTheDecoderOverTheWholeText) {
  for (const auto compute : {mx::float32, mx::bfloat16}) {
    const auto model = load_golden(GetParam().model, compute);
    const float tolerance = compute == mx::float32 ? 2e-4f : 0.15f;
    const Ids more{4, 8, 2};
    const auto want = by_decoder(model, prompt(), more);
    const auto runner = make(model);
    const auto id = runner->open();
    const Ids ids = prompt();
    EXPECT_LT(
        largest_error(runner->step({{{id, ids, LogitsOf::last}}}), want[0]),
        tolerance
    );
    for (std::size_t i = 0; i < more.size(); ++i) {
      const auto got = runner->step({{{id, {&more[i], 1}, LogitsOf::last}}});
      EXPECT_LT(largest_error(got, want[i + 1]), tolerance) << "step " << i;
    }
    EXPECT_EQ(runner->length(id), 30);
  }
}

TEST_P(RunnerOf, SequencesInOneStepDoNotMeet) {
  const auto model = load_golden(GetParam().model, mx::float32);
  const Ids a = prompt(), b{7, 7, 30, 2}, c{11};
  const auto runner = make(model);
  const auto i = runner->open(), j = runner->open(), k = runner->open();
  const auto got = runner->step(
      {{{i, a, LogitsOf::last}, {j, b, LogitsOf::all}, {k, c, LogitsOf::none}}}
  );
  const auto vocab = static_cast<std::size_t>(runner->vocabulary());
  ASSERT_EQ(got.size(), (1 + b.size()) * vocab);
  EXPECT_LT(
      largest_error(got.first(vocab), by_decoder(model, a, {})[0]), 2e-4f
  );
  const auto rows = by_decoder(model, {b[0]}, {b[1], b[2], b[3]});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    EXPECT_LT(
        largest_error(got.subspan((1 + row) * vocab, vocab), rows[row]), 2e-4f
    ) << "row "
      << row;
  }
  const Ids next{5};
  const auto then =
      runner->step({{{k, next, LogitsOf::last}, {i, next, LogitsOf::last}}});
  EXPECT_LT(
      largest_error(then.first(vocab), by_decoder(model, {11, 5}, {})[0]), 2e-4f
  );
  EXPECT_LT(
      largest_error(then.last(vocab), by_decoder(model, a, {5})[1]), 2e-4f
  );
}

TEST_P(RunnerOf, ForksAndTruncatesKeepWhatTheyShould) {
  const auto model = load_golden(GetParam().model, mx::float32);
  const auto runner = make(model);
  const Ids ids = prompt(), x{21}, y{22};
  const auto whole = runner->open();
  runner->step({{{whole, ids, LogitsOf::none}}});
  for (const int cut : {0, 3, 4, 16, 17, 27}) {
    const Ids kept(ids.begin(), ids.begin() + cut);
    const auto branch = runner->fork(whole, cut);
    EXPECT_EQ(runner->length(branch), cut);
    Ids all = kept;
    all.push_back(21);
    const auto want = by_decoder(model, all, {})[0];
    EXPECT_LT(
        largest_error(runner->step({{{branch, x, LogitsOf::last}}}), want),
        2e-4f
    ) << cut;
    // Back and again: what was forgotten leaves no trace.
    runner->truncate(branch, cut);
    runner->step({{{branch, y, LogitsOf::none}}});
    runner->truncate(branch, cut);
    EXPECT_LT(
        largest_error(runner->step({{{branch, x, LogitsOf::last}}}), want),
        2e-4f
    ) << cut;
    runner->close(branch);
  }
  Ids more = ids;
  more.push_back(21);
  EXPECT_LT(
      largest_error(
          runner->step({{{whole, x, LogitsOf::last}}}),
          by_decoder(model, more, {})[0]
      ),
      2e-4f
  ) << "the source was changed";
}

TEST_P(RunnerOf, ByteKeysAgreeRoughly) {
  const auto model = load_golden(GetParam().model, mx::float32);
  const auto runner = make(model, {.kv = KvType::int8});
  const auto want = by_graph(model, prompt(), {4}, {.kv = KvType::int8});
  const auto id = runner->open();
  const Ids ids = prompt(), next{4};
  runner->step({{{id, ids, LogitsOf::none}}});
  const auto got = runner->step({{{id, next, LogitsOf::last}}});
  EXPECT_LT(largest_error(got, want[1]), 0.02f);
}

TEST_P(RunnerOf, InvariantRowsAreTheSameBitForBit) {
  const auto model = load_golden(GetParam().model, mx::bfloat16);
  const auto runner = make(model, {.batch_invariant = true});
  const Ids ids = prompt();
  const auto alone = runner->open();
  std::vector<float> want;
  for (const std::int32_t id : ids) {
    const auto row = runner->step({{{alone, {&id, 1}, LogitsOf::last}}});
    want.insert(want.end(), row.begin(), row.end());
  }
  const auto a = runner->open(), b = runner->open();
  const Ids other(25, 2);
  const auto got =
      runner->step({{{b, other, LogitsOf::none}, {a, ids, LogitsOf::all}}});
  ASSERT_EQ(got.size(), want.size());
  EXPECT_TRUE(std::ranges::equal(got, want))
      << "largest difference " << largest_error(got, want);
}

const Way kGraph[] = {
    {"llama3-gqa", true}, {"gpt2", true},  {"gemma3", true},
    {"mistral", true},    {"qwen3", true},
};
const Way kPages[] = {
    {"llama3-gqa", false},
    {"qwen2-window", false},
    {"qwen3-bias-tied", false},
    {"smollm2-shape", false},
    {"gpt2", false},
    {"gemma2", false},
    {"gemma3", false},
};
constexpr std::size_t kFew = 4;

std::vector<Way> all_in_pages() {
  std::vector<Way> ways;
  for (const auto& model : golden_models()) {
    if (!left_to_the_graph(model)) ways.push_back({model, false});
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(
    Graph,
    RunnerLogitsOf,
    testing::ValuesIn(kGraph),
    name_of_way
);
INSTANTIATE_TEST_SUITE_P(
    Pages,
    RunnerLogitsOf,
    testing::ValuesIn(all_in_pages()),
    name_of_way
);
INSTANTIATE_TEST_SUITE_P(
    Graph,
    RunnerOf,
    testing::ValuesIn(kGraph, kGraph + kFew),
    name_of_way
);
INSTANTIATE_TEST_SUITE_P(
    Pages,
    RunnerOf,
    testing::ValuesIn(kPages),
    name_of_way
);

class Adapted : public testing::TestWithParam<bool> {};

// DoRA is the graph's alone.
std::vector<std::string> adapter_names(bool graph) {
  if (!graph) return {"lora", "lora-patterns"};
  return {"lora", "lora-patterns", "dora"};
}

TEST_P(Adapted, EachSequenceHasItsOwn) {
  const std::string folder = HEARTH_SOURCE_DIR "/tests/golden/adapters/";
  const auto base = load_golden("llama3-gqa", mx::float32);
  RunnerOptions o{.page_tokens = 16, .graph = GetParam()};
  for (const auto& name : adapter_names(GetParam())) {
    o.adapters.push_back(folder + name);
  }
  const auto runner = make_runner(base, o);
  EXPECT_NE(dynamic_cast<CpuRunner*>(runner.get()) != nullptr, GetParam());
  const Ids ids = prompt();
  std::vector<RunnerPart> parts;
  std::vector<std::vector<float>> want{by_decoder(base, ids, {})[0]};
  parts.push_back({runner->open(), ids, LogitsOf::last});
  for (int i = 0; i < std::ssize(o.adapters); ++i) {
    auto model = load_golden("llama3-gqa", mx::float32);
    models::load_adapter(model, o.adapters[static_cast<std::size_t>(i)]);
    want.push_back(by_decoder(model, ids, {})[0]);
    EXPECT_GT(largest_error(want.back(), want[0]), 0.01f);
    parts.push_back({runner->open(i), ids, LogitsOf::last});
  }
  const auto got = runner->step(parts);
  const auto vocab = static_cast<std::size_t>(runner->vocabulary());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_LT(largest_error(got.subspan(i * vocab, vocab), want[i]), 2e-4f)
        << "adapter " << static_cast<int>(i) - 1;
  }
  EXPECT_THROW(runner->open(3), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Ways, Adapted, testing::Bool());

class Pool : public testing::TestWithParam<bool> {};

TEST_P(Pool, TheBudgetIsKeptToTheByte) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  const auto& c = model.decoder->config();
  for (const KvType kv : {KvType::float32, KvType::int8}) {
    const auto rows = static_cast<std::size_t>(2 * c.layers * c.kv_heads) * 16;
    const std::size_t page =
        kv == KvType::int8 ? rows * static_cast<std::size_t>(c.head_dim + 4)
                           : rows * static_cast<std::size_t>(c.head_dim) * 4;
    EXPECT_EQ(kv_bytes(c, kv, 16), page);
    RunnerOptions o{.kv = kv, .page_tokens = 16};
    o.kv_budget_bytes = 3 * page + page - 1;
    o.graph = GetParam();
    const auto runner = make_runner(model, o);
    EXPECT_EQ(runner->pool().page_bytes, page);
    EXPECT_EQ(runner->pool().pages, 3);
    const auto before = MemoryZone::named("kv cache").live();
    const auto id = runner->open();
    const Ids whole(16, 5), one{6};
    runner->step({{{id, whole, LogitsOf::none}}});
    EXPECT_EQ(runner->pool().free_pages, 2);
    EXPECT_EQ(runner->pages_for(id, 0), 0);
    EXPECT_EQ(runner->pages_for(id, 16), 1);
    EXPECT_EQ(runner->pages_for(id, 17), 2);
    runner->step({{{id, one, LogitsOf::none}}});
    EXPECT_EQ(runner->pool().free_pages, 1);
    EXPECT_LE(MemoryZone::named("kv cache").live() - before, 3 * page);
    runner->truncate(id, 16);
    EXPECT_EQ(runner->pool().free_pages, 2);
    runner->close(id);
    EXPECT_EQ(runner->pool().free_pages, 3);
  }
}

TEST_P(Pool, AFullPoolRefusesBeforeAnythingChanged) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  RunnerOptions o{.page_tokens = 16, .graph = GetParam()};
  o.kv_budget_bytes =
      3 * kv_bytes(model.decoder->config(), KvType::float32, 16);
  const auto runner = make_runner(model, o);
  const auto a = runner->open(), b = runner->open();
  const Ids whole(16, 5), more(17, 6), two{7, 8};
  runner->step({{{a, whole, LogitsOf::none}}});
  const Ids most(33, 1);
  EXPECT_THROW(
      runner->step({{{a, two, LogitsOf::none}, {b, more, LogitsOf::none}}}),
      OutOfMemory
  );
  EXPECT_EQ(runner->length(a), 16);
  EXPECT_EQ(runner->length(b), 0);
  EXPECT_EQ(runner->pool().free_pages, 2);
  const auto got = runner->step({{{a, two, LogitsOf::last}}});
  EXPECT_LT(largest_error(got, by_decoder(model, whole, {7, 8}).back()), 2e-4f);
  EXPECT_THROW(runner->step({{{b, most, LogitsOf::none}}}), OutOfMemory);
  o.kv_budget_bytes = 1;
  EXPECT_THROW(make_runner(model, o), UsageError);
  o.kv_budget_bytes = std::size_t{1} << 50;
  EXPECT_THROW(make_runner(model, o), UsageError);
}

TEST(Pages, TwoModelsShareABudgetByTheirTokens) {
  EXPECT_EQ(first_share(0, 3, 1), 0U);
  EXPECT_EQ(first_share(1000, 300, 100), 750U);
  EXPECT_EQ(first_share(std::size_t{1} << 40, 1, 1), std::size_t{1} << 39);
}

TEST(Pages, WholeOnesAreSharedAndCopiedBeforeTheyChange) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  RunnerOptions o{.page_tokens = 16};
  o.kv_budget_bytes =
      8 * kv_bytes(model.decoder->config(), KvType::float32, 16);
  const auto runner = make_runner(model, o);
  const Ids ids = prompt(37), x{21};
  const auto a = runner->open();
  runner->step({{{a, ids, LogitsOf::none}}});
  EXPECT_EQ(runner->pool().free_pages, 5);
  const auto b = runner->fork(a, 32);
  EXPECT_EQ(runner->pool().free_pages, 5) << "whole pages are shared";
  const auto c = runner->fork(a, 37);
  EXPECT_EQ(runner->pool().free_pages, 4) << "the rest is a copy";
  // The second page of b is a's and c's too: writing into it copies it.
  runner->truncate(b, 20);
  EXPECT_EQ(runner->pages_for(b, 1), 1);
  const Ids begun(ids.begin(), ids.begin() + 20);
  EXPECT_LT(
      largest_error(
          runner->step({{{b, x, LogitsOf::last}}}),
          by_decoder(model, begun, {21})[1]
      ),
      2e-4f
  );
  EXPECT_EQ(runner->pool().free_pages, 3);
  for (const auto id : {a, c}) {
    EXPECT_LT(
        largest_error(
            runner->step({{{id, x, LogitsOf::last}}}),
            by_decoder(model, ids, {21})[1]
        ),
        2e-4f
    );
  }
  for (const auto id : {a, b, c}) runner->close(id);
  EXPECT_EQ(runner->pool().free_pages, 8);
}

TEST(Pages, HalfKeysServeEitherKindOfActivations) {
  for (const auto compute : {mx::float32, mx::bfloat16}) {
    const auto model = load_golden("llama3-gqa", compute);
    const auto want = by_decoder(model, prompt(), {4});
    for (const KvType kv : {KvType::float16, KvType::bfloat16}) {
      const auto runner = make_runner(model, {.kv = kv});
      const auto id = runner->open();
      const Ids ids = prompt(), next{4};
      EXPECT_LT(
          largest_error(runner->step({{{id, ids, LogitsOf::last}}}), want[0]),
          0.15f
      );
      EXPECT_LT(
          largest_error(runner->step({{{id, next, LogitsOf::last}}}), want[1]),
          0.15f
      );
    }
  }
}

TEST(Pages, QuantisedWeightsInEveryWay) {
  using kernels::QuantFormat;
  using kernels::QuantKind;
  for (const auto& format :
       {QuantFormat::gguf(QuantKind::kQ8_0),
        QuantFormat::gguf(QuantKind::kQ4_0),
        QuantFormat::affine(4, 32, kernels::ScaleType::kF16)}) {
    const auto model = quantized_golden("llama3-gqa", format);
    for (const auto products :
         {QuantProducts::automatic, QuantProducts::int8,
          QuantProducts::exact}) {
      const auto runner = make_runner(model, {.products = products});
      ASSERT_NE(dynamic_cast<CpuRunner*>(runner.get()), nullptr);
      const auto id = runner->open();
      const Ids ids = prompt(), next{4};
      const auto want = by_graph(model, ids, next, {.products = products});
      const auto same = [&](const Ids& some, const std::vector<float>& row) {
        const auto got = runner->step({{{id, some, LogitsOf::last}}});
        EXPECT_LT(largest_error(got, row), 0.2f)
            << format.name() << " products " << static_cast<int>(products);
      };
      same(ids, want[0]), same(next, want[1]);
    }
  }
}

TEST(Pages, QuantisedRowsMayBeInvariantToo) {
  const auto model = quantized_golden(
      "llama3-gqa", kernels::QuantFormat::gguf(kernels::QuantKind::kQ4_0)
  );
  const auto runner = make_runner(model, {.batch_invariant = true});
  const Ids ids = prompt();
  const auto a = runner->open(), b = runner->open();
  std::vector<float> want;
  for (const std::int32_t id : ids) {
    const auto row = runner->step({{{a, {&id, 1}, LogitsOf::last}}});
    want.insert(want.end(), row.begin(), row.end());
  }
  const auto got = runner->step({{{b, ids, LogitsOf::all}}});
  EXPECT_TRUE(std::ranges::equal(got, want))
      << "largest difference " << largest_error(got, want);
}

TEST_P(Pool, AKnownBeginningChangesNothingOfAPrompt) {
  const auto model = quantized_golden(
      "llama3-gqa", kernels::QuantFormat::gguf(kernels::QuantKind::kQ4_0),
      mx::float32
  );
  const auto runner = make_runner(model, {.graph = GetParam()});
  const Ids ids = prompt();
  const auto whole = runner->open();
  const auto row = runner->step({{{whole, ids, LogitsOf::last, true}}});
  const std::vector<float> want(row.begin(), row.end());
  const auto last = std::span(ids).last(1);
  const auto error = [&](bool prompt) {
    const auto rest = runner->fork(whole, static_cast<int>(ids.size()) - 1);
    return largest_error(
        runner->step({{{rest, last, LogitsOf::last, prompt}}}), want
    );
  };
  EXPECT_LT(error(true), 2e-4f);
  // A step rounds its activations to bytes.
  EXPECT_GT(error(false), 1e-3f);
}

TEST_P(Pool, NonsenseIsRefused) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  const auto runner = make_runner(model, {.graph = GetParam()});
  const auto id = runner->open();
  const Ids good{1, 2}, bad{runner->vocabulary()}, negative{-1};
  const Ids long_one(static_cast<std::size_t>(runner->context()) + 1, 1);
  for (const auto& ids : {bad, negative, long_one, Ids{}}) {
    EXPECT_THROW(runner->step({{{id, ids, LogitsOf::last}}}), UsageError);
  }
  EXPECT_THROW(
      runner->step({{{id, good, LogitsOf::last}, {id, good, LogitsOf::last}}}),
      UsageError
  );
  EXPECT_THROW(runner->step({{{id + 1, good, LogitsOf::last}}}), UsageError);
  EXPECT_THROW(runner->fork(id, 1), UsageError);
  EXPECT_THROW(runner->truncate(id, 1), UsageError);
  EXPECT_THROW(runner->open(0), UsageError);
  EXPECT_EQ(runner->length(id), 0);
  runner->close(id);
  EXPECT_THROW(runner->close(id), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Ways, Pool, testing::Bool());

}  // namespace
}  // namespace hearth::infer
