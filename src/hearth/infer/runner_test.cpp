// Every runner against Sequence, which knows neither pages nor batches.
#include "hearth/infer/runner.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/infer/kv_layout.h"
#include "hearth/infer/make_runner.h"
#include "hearth/models/adapters.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

models::LoadedModel load(const std::string& name, mx::Dtype compute) {
  return models::load_model(
      HEARTH_SOURCE_DIR "/tests/golden/models/" + name, {.compute = compute}
  );
}

Ids prompt() {
  return {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9};
}

float largest_error(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float e = std::abs(a[i] - b[i]);
    worst = std::isnan(e) ? INFINITY : std::max(worst, e);
  }
  return worst;
}

// Logits after the prompt and after each of `more` further tokens.
std::vector<std::vector<float>> by_sequence(
    const models::LoadedModel& model,
    const Ids& first,
    const Ids& more,
    KvType kv = KvType::automatic
) {
  Sequence sequence(model, kv);
  std::vector<std::vector<float>> out;
  const auto keep = [&](std::span<const float> row) {
    out.emplace_back(row.begin(), row.end());
  };
  keep(sequence.feed(first));
  for (const std::int32_t id : more) keep(sequence.feed({&id, 1}));
  return out;
}

struct Way {
  std::string model;
  bool graph;
};

class RunnerOf : public testing::TestWithParam<Way> {
 protected:
  std::unique_ptr<Runner> make(
      const models::LoadedModel& model,
      RunnerOptions options = {}
  ) const {
    options.graph = GetParam().graph;
    return make_runner(model, options);
  }
};

TEST_P(RunnerOf, GivesTheLogitsOfSequence) {
  for (const auto compute : {mx::float32, mx::bfloat16}) {
    const auto model = load(GetParam().model, compute);
    const float tolerance = compute == mx::float32 ? 2e-4f : 0.06f;
    const Ids more{4, 8, 2};
    const auto want = by_sequence(model, prompt(), more);
    const auto runner = make(model, {.page_tokens = 4});
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
    EXPECT_EQ(runner->length(id), 14);
  }
}

TEST_P(RunnerOf, SequencesInOneStepDoNotMeet) {
  const auto model = load(GetParam().model, mx::float32);
  const Ids a = prompt(), b{7, 7, 30, 2}, c{11};
  const auto runner = make(model, {.page_tokens = 4});
  const auto i = runner->open(), j = runner->open(), k = runner->open();
  const auto got = runner->step(
      {{{i, a, LogitsOf::last}, {j, b, LogitsOf::all}, {k, c, LogitsOf::none}}}
  );
  const auto vocab = static_cast<std::size_t>(runner->vocabulary());
  ASSERT_EQ(got.size(), (1 + b.size()) * vocab);
  EXPECT_LT(
      largest_error(got.first(vocab), by_sequence(model, a, {})[0]), 2e-4f
  );
  const auto rows = by_sequence(model, {b[0]}, {b[1], b[2], b[3]});
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
      largest_error(then.first(vocab), by_sequence(model, {11, 5}, {})[0]),
      2e-4f
  );
  EXPECT_LT(
      largest_error(then.last(vocab), by_sequence(model, a, {5})[1]), 2e-4f
  );
}

TEST_P(RunnerOf, ForksAndTruncatesKeepWhatTheyShould) {
  const auto model = load(GetParam().model, mx::float32);
  const auto runner = make(model, {.page_tokens = 4});
  const Ids ids = prompt(), x{21}, y{22};
  const auto whole = runner->open();
  runner->step({{{whole, ids, LogitsOf::none}}});
  for (const int cut : {0, 3, 4, 8, 9, 11}) {
    const Ids kept(ids.begin(), ids.begin() + cut);
    const auto branch = runner->fork(whole, cut);
    EXPECT_EQ(runner->length(branch), cut);
    Ids all = kept;
    all.push_back(21);
    const auto want = by_sequence(model, all, {})[0];
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
          by_sequence(model, more, {})[0]
      ),
      2e-4f
  ) << "the source was changed";
}

TEST_P(RunnerOf, ByteKeysAgreeRoughly) {
  const auto model = load(GetParam().model, mx::float32);
  const auto runner = make(model, {.kv = KvType::int8, .page_tokens = 4});
  const auto want = by_sequence(model, prompt(), {4}, KvType::int8);
  const auto id = runner->open();
  const Ids ids = prompt(), next{4};
  runner->step({{{id, ids, LogitsOf::none}}});
  const auto got = runner->step({{{id, next, LogitsOf::last}}});
  EXPECT_LT(largest_error(got, want[1]), 0.02f);
}

TEST_P(RunnerOf, InvariantRowsAreTheSameBitForBit) {
  const auto model = load(GetParam().model, mx::bfloat16);
  const auto runner = make(model, {.page_tokens = 4, .batch_invariant = true});
  const Ids ids = prompt();
  const auto alone = runner->open();
  std::vector<float> want;
  for (const std::int32_t id : ids) {
    const auto row = runner->step({{{alone, {&id, 1}, LogitsOf::last}}});
    want.insert(want.end(), row.begin(), row.end());
  }
  const auto a = runner->open(), b = runner->open();
  const Ids other{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto got =
      runner->step({{{b, other, LogitsOf::none}, {a, ids, LogitsOf::all}}});
  ASSERT_EQ(got.size(), want.size());
  EXPECT_TRUE(std::ranges::equal(got, want))
      << "largest difference " << largest_error(got, want);
}

INSTANTIATE_TEST_SUITE_P(
    Graph,
    RunnerOf,
    testing::Values(
        Way{"llama3-gqa", true},
        Way{"gpt2", true},
        Way{"gemma3", true},
        Way{"mistral", true},
        Way{"qwen3", true}
    ),
    [](const auto& item) {
      std::string name = item.param.model;
      std::ranges::replace(name, '-', '_');
      return name;
    }
);

class Adapted : public testing::TestWithParam<bool> {};

TEST_P(Adapted, EachSequenceHasItsOwn) {
  const std::string folder = HEARTH_SOURCE_DIR "/tests/golden/adapters/";
  const auto base = load("llama3-gqa", mx::float32);
  RunnerOptions o{.page_tokens = 4, .graph = GetParam()};
  o.adapters = {folder + "lora", folder + "lora-patterns", folder + "dora"};
  const auto runner = make_runner(base, o);
  const Ids ids = prompt();
  std::vector<RunnerPart> parts;
  std::vector<std::vector<float>> want{by_sequence(base, ids, {})[0]};
  parts.push_back({runner->open(), ids, LogitsOf::last});
  for (int i = 0; i < 3; ++i) {
    auto model = load("llama3-gqa", mx::float32);
    models::load_adapter(model, o.adapters[static_cast<std::size_t>(i)]);
    want.push_back(by_sequence(model, ids, {})[0]);
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

INSTANTIATE_TEST_SUITE_P(Ways, Adapted, testing::Values(true));

class Pool : public testing::TestWithParam<bool> {};

TEST_P(Pool, TheBudgetIsKeptToTheByte) {
  const auto model = load("llama3-gqa", mx::float32);
  const auto& c = model.decoder->config();
  for (const KvType kv : {KvType::float32, KvType::int8}) {
    const auto rows = static_cast<std::size_t>(2 * c.layers * c.kv_heads) * 8;
    const std::size_t page =
        kv == KvType::int8 ? rows * static_cast<std::size_t>(c.head_dim + 4)
                           : rows * static_cast<std::size_t>(c.head_dim) * 4;
    EXPECT_EQ(kv_bytes(c, kv, 8), page);
    RunnerOptions o{.kv = kv, .page_tokens = 8};
    o.kv_budget_bytes = 3 * page + page - 1;
    o.graph = GetParam();
    const auto runner = make_runner(model, o);
    EXPECT_EQ(runner->pool().page_bytes, page);
    EXPECT_EQ(runner->pool().pages, 3);
    const auto before = MemoryZone::named("kv cache").live();
    const auto id = runner->open();
    const Ids eight(8, 5), one{6};
    runner->step({{{id, eight, LogitsOf::none}}});
    EXPECT_EQ(runner->pool().free_pages, 2);
    EXPECT_EQ(runner->pages_for(id, 0), 0);
    EXPECT_EQ(runner->pages_for(id, 8), 1);
    EXPECT_EQ(runner->pages_for(id, 9), 2);
    runner->step({{{id, one, LogitsOf::none}}});
    EXPECT_EQ(runner->pool().free_pages, 1);
    EXPECT_LE(MemoryZone::named("kv cache").live() - before, 3 * page);
    runner->truncate(id, 8);
    EXPECT_EQ(runner->pool().free_pages, 2);
    runner->close(id);
    EXPECT_EQ(runner->pool().free_pages, 3);
  }
}

TEST_P(Pool, AFullPoolRefusesBeforeAnythingChanged) {
  const auto model = load("llama3-gqa", mx::float32);
  RunnerOptions o{.page_tokens = 4, .graph = GetParam()};
  o.kv_budget_bytes = 3 * kv_bytes(model.decoder->config(), KvType::float32, 4);
  const auto runner = make_runner(model, o);
  const auto a = runner->open(), b = runner->open();
  const Ids four(4, 5), five(5, 6), two{7, 8};
  runner->step({{{a, four, LogitsOf::none}}});
  const Ids nine(9, 1);
  EXPECT_THROW(
      runner->step({{{a, two, LogitsOf::none}, {b, five, LogitsOf::none}}}),
      OutOfMemory
  );
  EXPECT_EQ(runner->length(a), 4);
  EXPECT_EQ(runner->length(b), 0);
  EXPECT_EQ(runner->pool().free_pages, 2);
  const auto got = runner->step({{{a, two, LogitsOf::last}}});
  EXPECT_LT(largest_error(got, by_sequence(model, four, {7, 8}).back()), 2e-4f);
  EXPECT_THROW(runner->step({{{b, nine, LogitsOf::none}}}), OutOfMemory);
  o.kv_budget_bytes = 1;
  EXPECT_THROW(make_runner(model, o), UsageError);
}

TEST_P(Pool, NonsenseIsRefused) {
  const auto model = load("llama3-gqa", mx::float32);
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

INSTANTIATE_TEST_SUITE_P(Ways, Pool, testing::Values(true));

}  // namespace
}  // namespace hearth::infer
