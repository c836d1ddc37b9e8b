// The runner that decodes batches on a GPU, as a CPU runs what it builds:
// against the decoder over whole texts, and its texts against those of the
// runner without a graph.
#include "hearth/infer/graph/paged_runner.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/infer/cpu/runner.h"
#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/sampler.h"
#include "hearth/models/adapters.h"

namespace hearth::infer {
namespace {

constexpr int kPage = 16;
constexpr float kClose = 2e-4f;

// Those whose heads the kernel takes.
std::vector<std::string> paged_models() {
  std::vector<std::string> names;
  for (const auto& name : golden_models()) {
    const auto model = load_golden(name, mx::float32);
    constexpr int kEight = 8;
    if (left_to_the_graph(name)) continue;
    if (model.decoder->config().head_dim % kEight == 0) names.push_back(name);
  }
  return names;
}

std::string name_of_model(const testing::TestParamInfo<std::string>& item) {
  return test_name(item.param);
}

std::unique_ptr<Runner> on_device(
    const models::LoadedModel& model,
    RunnerOptions options = {}
) {
  options.page_tokens = kPage;
  auto runner = make_runner(model, options);
  EXPECT_NE(dynamic_cast<PagedRunner*>(runner.get()), nullptr)
      << "another runner was picked";
  return runner;
}

// Begun with prompts of other lengths, joined and left by others on the way.
std::vector<Ids> prompts() {
  std::vector<Ids> out;
  for (const int n : {3, 15, 16, 21, 7}) {
    Ids all = prompt(n + 4);
    out.emplace_back(all.begin() + 4 - n % 4, all.begin() + n + 4 - n % 4);
  }
  return out;
}

// Texts by step(): each sequence joins one step after the one before it.
std::vector<Ids> texts_by_logits(Runner& runner, int tokens) {
  const auto begun = prompts();
  std::vector<SequenceId> ids;
  std::vector<Ids> texts(begun.size());
  const auto vocab = static_cast<std::size_t>(runner.vocabulary());
  for (;;) {
    if (ids.size() < begun.size()) ids.push_back(runner.open());
    std::vector<RunnerPart> parts;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (std::ssize(texts[i]) == tokens) continue;
      const std::span<const std::int32_t> fed =
          texts[i].empty() ? std::span(begun[i]) : std::span(texts[i]).last(1);
      parts.push_back({ids[i], fed, LogitsOf::last, texts[i].empty()});
      who.push_back(i);
    }
    if (parts.empty()) break;
    const auto logits = runner.step(parts);
    for (std::size_t i = 0; i < who.size(); ++i) {
      texts[who[i]].push_back(greedy(logits.subspan(i * vocab, vocab)));
    }
  }
  return texts;
}

class PagedFamily : public testing::TestWithParam<std::string> {};

TEST_P(PagedFamily, WritesWhatTheRunnerWithoutAGraphWrites) {
  constexpr int kTokens = 12;  // over the border of a page
  const auto plain = load_golden(GetParam(), mx::float32);
  const auto cpu = make_runner(plain, {.page_tokens = kPage});
  ASSERT_NE(dynamic_cast<CpuRunner*>(cpu.get()), nullptr);
  const auto want = texts_by_logits(*cpu, kTokens);
  const ops::ScopedFace gpu(ops::Face::gpu);
  const auto model = load_golden(GetParam(), mx::float32);
  const auto runner = on_device(model);
  EXPECT_EQ(texts_by_logits(*runner, kTokens), want);
}

TEST_P(PagedFamily, LogitsAreThoseOfTheDecoderOverTheWholeText) {
  const ops::ScopedFace gpu(ops::Face::gpu);
  for (const auto compute : {mx::float32, mx::bfloat16}) {
    const auto model = load_golden(GetParam(), compute);
    const float tolerance = compute == mx::float32 ? kClose : 0.15f;
    const Ids more{4, 8, 2}, ids = prompt();
    const auto want = by_decoder(model, ids, more);
    const auto runner = on_device(model);
    const auto id = runner->open(), other = runner->open();
    const Ids few{9, 1};
    runner->step({{{other, few, LogitsOf::none}}});
    EXPECT_LT(
        largest_error(runner->step({{{id, ids, LogitsOf::last}}}), want[0]),
        tolerance
    );
    for (std::size_t i = 0; i < more.size(); ++i) {
      const auto got = runner->step(
          {{{other, {&more[i], 1}, LogitsOf::none},
            {id, {&more[i], 1}, LogitsOf::last}}}
      );
      EXPECT_LT(largest_error(got, want[i + 1]), tolerance) << "step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden,
    PagedFamily,
    testing::ValuesIn(paged_models()),
    name_of_model
);

class Paged : public testing::Test {
 protected:
  const ops::ScopedFace gpu{ops::Face::gpu};
};

// The text of each row of a batch whose tokens the device chooses, with a step
// sent before the last one's tokens are known.
TEST_F(Paged, ChoosesTokensAheadOfTheHost) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  const auto runner = on_device(model);
  ASSERT_TRUE(runner->chooses());
  constexpr int kTokens = 20;
  const auto want = texts_by_logits(*on_device(model), kTokens);
  const auto begun = prompts();
  std::vector<DrawnRow> rows;
  std::vector<Ids> texts;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    rows.push_back({runner->open(), {}, {}});
    const auto logits =
        runner->step({{{rows[i].sequence, begun[i], LogitsOf::last}}});
    texts.push_back({greedy(logits)});
    rows[i].id = texts[i][0];
  }
  const auto receive = [&](const std::vector<std::size_t>& who) {
    const auto tokens = runner->receive();
    ASSERT_EQ(tokens.size(), who.size());
    for (std::size_t i = 0; i < who.size(); ++i) {
      texts[who[i]].push_back(tokens[i]);
    }
  };
  std::vector<std::size_t> before, now{0, 1, 2, 3, 4};
  for (int t = 1; t < kTokens; ++t) {
    // One leaves on the way and comes back, the others change places.
    if (t == 7) now = {4, 0, 2, 3};
    if (t == 11) now = {1, 4, 3, 0, 2};
    std::vector<DrawnRow> sent;
    for (const auto i : now) {
      sent.push_back(rows[i]);
      if (t > 1) sent.back().id.reset();
    }
    if (t == 11) sent[0].id = texts[1].back();
    runner->send(sent);
    if (t > 1) receive(before);
    before = now;
  }
  receive(before);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto same = std::ranges::mismatch(texts[i], want[i]);
    EXPECT_EQ(same.in1, texts[i].end()) << "row " << i;
    EXPECT_EQ(texts[i].size(), i == 1 ? kTokens - 4u : kTokens) << "row " << i;
  }
  EXPECT_THROW(runner->receive(), UsageError);
  EXPECT_THROW(runner->send({{{runner->open(), {}, {}}}}), UsageError);
}

TEST_F(Paged, ForksAndTruncatesKeepWhatTheyShould) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  const auto runner = on_device(model);
  const Ids ids = prompt(), x{21}, y{22};
  const auto whole = runner->open();
  runner->step({{{whole, ids, LogitsOf::none}}});
  for (const int cut : {0, 3, 16, 17, 27}) {
    Ids all(ids.begin(), ids.begin() + cut);
    const auto branch = runner->fork(whole, cut);
    all.push_back(21);
    const auto want = by_decoder(model, all, {})[0];
    const auto next = [&](const Ids& id) {
      return runner->step({{{branch, id, LogitsOf::last}}});
    };
    EXPECT_LT(largest_error(next(x), want), kClose) << cut;
    runner->truncate(branch, cut);
    next(y);
    runner->truncate(branch, cut);
    EXPECT_LT(largest_error(next(x), want), kClose) << cut;
    runner->close(branch);
  }
  Ids more = ids;
  more.push_back(21);
  EXPECT_LT(
      largest_error(
          runner->step({{{whole, x, LogitsOf::last}}}),
          by_decoder(model, more, {})[0]
      ),
      kClose
  ) << "the source was changed";
}

TEST_F(Paged, ABudgetIsKeptAndAFullPoolRefuses) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  RunnerOptions o;
  o.kv_budget_bytes =
      3 * kv_bytes(model.decoder->config(), KvType::float32, kPage);
  const auto runner = on_device(model, o);
  EXPECT_EQ(runner->pool().pages, 3);
  const auto a = runner->open(), b = runner->open();
  const Ids whole(16, 5), more(17, 6), two{7, 8};
  runner->step({{{a, whole, LogitsOf::none}}});
  EXPECT_THROW(
      runner->step({{{a, two, LogitsOf::none}, {b, more, LogitsOf::none}}}),
      OutOfMemory
  );
  EXPECT_EQ(runner->length(a), 16);
  EXPECT_EQ(runner->pool().free_pages, 2);
  const auto got = runner->step({{{a, two, LogitsOf::last}}});
  EXPECT_LT(
      largest_error(got, by_decoder(model, whole, {7, 8}).back()), kClose
  );
}

TEST_F(Paged, PagesGrowWithWhatIsInThem) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  DevicePages pages(model.decoder->config(), mx::float32, kPage, 1 << 20);
  const auto there = pages.layers()[0].shape(0);
  auto filled = ops::copy_page(pages.layers()[0], 0, 1);
  filled.eval();
  const auto ones = mx::ones({1, there * kPage - kPage, 2, 8}, mx::float32);
  std::vector<int> places;
  for (int i = 0; i < there - 1; ++i) places.push_back(DevicePages::place(i));
  auto [k, v] = ops::append_to_pages(
      ones, ones, pages.layers()[1],
      mx::array(places.data(), {there - 1}, mx::int32), 0
  );
  mx::eval(k, v);
  pages.reach(there - 1);
  EXPECT_EQ(pages.generation(), 0);
  pages.reach(there + 5);
  EXPECT_EQ(pages.generation(), 1);
  EXPECT_GE(pages.layers()[1].shape(0), there + 6);
  const auto old =
      mx::slice(pages.layers()[1], {1, 0, 0, 0, 0}, {there, 2, 2, kPage, 8});
  EXPECT_TRUE(mx::all(mx::equal(old, mx::array(1.0f))).item<bool>());
}

TEST_F(Paged, EachSequenceHasItsOwnAdapter) {
  const std::string folder = HEARTH_SOURCE_DIR "/tests/golden/adapters/";
  const auto base = load_golden("llama3-gqa", mx::float32);
  RunnerOptions o;
  for (const char* name : {"lora", "dora"}) {
    o.adapters.push_back(folder + name);
  }
  const auto runner = on_device(base, o);
  const Ids ids = prompt(), next{5};
  std::vector<RunnerPart> first, second;
  std::vector<std::vector<float>> want{by_decoder(base, ids, next)[1]};
  first.push_back({runner->open(), ids, LogitsOf::none});
  for (int i = 0; i < std::ssize(o.adapters); ++i) {
    auto model = load_golden("llama3-gqa", mx::float32);
    models::load_adapter(model, o.adapters[static_cast<std::size_t>(i)]);
    want.push_back(by_decoder(model, ids, next)[1]);
    first.push_back({runner->open(i), ids, LogitsOf::none});
  }
  runner->step(first);
  for (const auto& part : first) {
    second.push_back({part.sequence, next, LogitsOf::last});
  }
  const auto got = runner->step(second);
  const auto vocab = static_cast<std::size_t>(runner->vocabulary());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_LT(largest_error(got.subspan(i * vocab, vocab), want[i]), kClose)
        << "adapter " << static_cast<int>(i) - 1;
  }
  EXPECT_THROW(runner->open(2), UsageError);
  EXPECT_THROW(
      runner->send({{{first[0].sequence, 1, {}}, {first[1].sequence, 1, {}}}}),
      UsageError
  );
}

TEST_F(Paged, InvariantRowsAreTheSameBitForBit) {
  const auto model = load_golden("llama3-gqa", mx::bfloat16);
  const auto runner = on_device(model, {.batch_invariant = true});
  EXPECT_FALSE(runner->chooses());
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
  EXPECT_TRUE(std::ranges::equal(got, want));
}

TEST_F(Paged, StatesAreTheDecoders) {
  const auto model = load_golden("llama3-gqa", mx::float32);
  const auto runner = on_device(model);
  const auto one = runner->open(), other = runner->open();
  const Ids ids = prompt(), next{5};
  const auto collect = [&](std::span<const RunnerPart> parts) {
    runner->step(parts);
    return std::vector<float>(runner->states().begin(), runner->states().end());
  };
  const auto whole = collect({{{one, ids, LogitsOf::none, true, true}}});
  const auto width = static_cast<std::size_t>(runner->width());
  EXPECT_EQ(whole.size(), ids.size() * width);
  const Ids head(ids.begin(), ids.end() - 1), tail(ids.end() - 1, ids.end());
  collect({{{other, head, LogitsOf::none, true, false}}});
  const auto last = collect(
      {{{one, next, LogitsOf::last}, {other, tail, LogitsOf::none, true, true}}}
  );
  EXPECT_LT(largest_error(last, std::span(whole).last(width)), kClose);
}

// What the kernel does not take, the graph's own runner runs.
TEST_F(Paged, WhatItDoesNotTakeIsLeftToTheGraph) {
  const auto runner_of = [](const std::string& name, const RunnerOptions& o) {
    const auto model = load_golden(name, mx::float32);
    const auto runner = make_runner(model, o);
    return dynamic_cast<ModelRunner*>(runner.get()) != nullptr;
  };
  EXPECT_TRUE(runner_of("llama-dynamic", {}));
  EXPECT_TRUE(runner_of("llama-headdim", {}));
  EXPECT_TRUE(runner_of("llama3-gqa", {.kv = KvType::int8}));
  EXPECT_TRUE(runner_of("llama3-gqa", {.graph = true}));
  EXPECT_FALSE(runner_of("llama3-gqa", {}));
}

}  // namespace
}  // namespace hearth::infer
