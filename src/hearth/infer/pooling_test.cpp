// Texts as vectors: every family's hidden states against transformers', and
// what an engine makes of them beside requests that write text.
#include "hearth/infer/pooling.h"

#include <filesystem>
#include <fstream>
#include <future>

#include <gtest/gtest.h>

#include "hearth/base/temp_folder_test.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/infer/pooling_file.h"
#include "hearth/io/safetensors.h"

namespace hearth::infer {
namespace {

template <class T>
std::vector<T> golden_numbers(const std::string& name, const char* tensor) {
  const auto file =
      io::SafetensorsFile::open(golden_folder(name) + "/expected.safetensors");
  const auto all = file->tensors();
  const auto t = std::ranges::find(all, tensor, &io::TensorInfo::name);
  if (t == all.end()) throw std::runtime_error("no such tensor");
  const auto bytes = file->bytes(*t);
  const auto* first = reinterpret_cast<const T*>(bytes.data());
  return {first, first + bytes.size() / sizeof(T)};
}

// Two sequences of ids and what transformers' last norm gives for them.
struct Golden {
  explicit Golden(const std::string& name)
      : ids(golden_numbers<std::int32_t>(name, "input_ids")),
        states(golden_numbers<float>(name, "norm")),
        length(ids.size() / 2),
        width(states.size() / ids.size()) {}

  Ids sequence(std::size_t i) const {
    const auto at = static_cast<std::ptrdiff_t>(i * length);
    return {ids.begin() + at, ids.begin() + at + std::ssize(ids) / 2};
  }
  std::vector<float> pooled(std::size_t i, Pooling pooling) const {
    std::vector<float> out(width);
    const std::size_t first = pooling == Pooling::mean ? 0 : length - 1;
    for (std::size_t t = first; t < length; ++t) {
      for (std::size_t k = 0; k < width; ++k) {
        out[k] += states[(i * length + t) * width + k] /
                  static_cast<float>(length - first);
      }
    }
    return out;
  }

  Ids ids;
  std::vector<float> states;
  std::size_t length, width;
};

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return ab / std::sqrt(aa * bb);
}

class Vectors : public testing::TestWithParam<std::string> {
 protected:
  Golden golden{GetParam()};

  std::vector<float> states_of(Runner& runner) const {
    EXPECT_EQ(runner.width(), static_cast<int>(golden.width));
    const Ids a = golden.sequence(0), b = golden.sequence(1);
    const std::size_t cut = golden.length / 3;
    const auto one = runner.open(), other = runner.open();
    const auto part = [](SequenceId id, std::span<const std::int32_t> ids) {
      return RunnerPart{id, ids, LogitsOf::none, true, true};
    };
    // In pieces, beside one that wants logits; and whole.
    std::vector<float> out;
    const auto keep = [&] {
      const auto rows = runner.states();
      out.insert(out.end(), rows.begin(), rows.end());
    };
    runner.step({{part(one, std::span(a).first(cut)), {other, b}}});
    keep();
    runner.step({{part(one, std::span(a).subspan(cut))}});
    keep();
    runner.step({{{other, std::span(b).first(1)}, part(runner.open(), b)}});
    keep();
    return out;
  }
};

TEST_P(Vectors, StatesAreTransformers) {
  const auto model = load_golden(GetParam(), mx::float32);
  for (const bool graph : {false, true}) {
    const auto runner = make_runner(model, {.page_tokens = 16, .graph = graph});
    EXPECT_LE(largest_error(states_of(*runner), golden.states), 1e-4f) << graph;
  }
}

TEST_P(Vectors, Bfloat16PointsTheSameWay) {
  const auto model = load_golden(GetParam(), mx::bfloat16);
  const auto runner = make_runner(model, {.page_tokens = 16});
  const auto got = states_of(*runner);
  ASSERT_EQ(got.size(), golden.states.size());
  EXPECT_GT(cosine(got, golden.states), 0.999);
}

struct Heard {
  std::vector<float> vector;
  Event end;
};

std::future<Heard> ask(Engine& engine, Request request) {
  auto promise = std::make_shared<std::promise<Heard>>();
  auto heard = std::make_shared<Heard>();
  auto out = promise->get_future();
  engine.submit(std::move(request), [promise, heard](const Event& event) {
    if (event.kind == Event::Kind::vector) heard->vector = event.vector;
    if (event.kind != Event::Kind::end) return;
    heard->end = event;
    promise->set_value(*heard);
  });
  return out;
}

Request pooled(const Ids& ids, Pooling pooling) {
  Request request;
  request.prompt = ids;
  request.max_tokens = 0;
  request.pooling = pooling;
  return request;
}

TEST_P(Vectors, AnEnginePoolsThem) {
  const auto model = load_golden(GetParam(), mx::float32);
  Engine engine(
      [&] { return make_runner(model, {.page_tokens = 16}); }, nullptr,
      {.prefill_chunk = 7}
  );
  for (const Pooling pooling : {Pooling::mean, Pooling::last}) {
    std::vector<std::future<Heard>> waiting;
    for (int i = 0; i < 6; ++i) {
      const auto row = static_cast<std::size_t>(i % 2);
      waiting.push_back(ask(engine, pooled(golden.sequence(row), pooling)));
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const Heard heard = waiting[i].get();
      EXPECT_EQ(heard.end.finish, Finish::stop);
      EXPECT_EQ(heard.end.prompt_tokens, static_cast<int>(golden.length));
      EXPECT_LE(
          largest_error(heard.vector, golden.pooled(i % 2, pooling)), 1e-4f
      );
    }
  }
}

// What scales its positions by the length in use has other states in pieces.
std::vector<std::string> families() {
  auto names = golden_models();
  std::erase_if(names, left_to_the_graph);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    Golden,
    Vectors,
    testing::ValuesIn(families()),
    [](const auto& item) { return test_name(item.param); }
);

// Long prompts that become vectors take no more of a step than others do, and
// leave no page behind.
TEST(VectorsBesideText, TextGoesOnInEveryStep) {
  // The first step waits until both are there, however busy the machine is.
  std::promise<void> both_there;
  FakeRunner::Options options;
  options.before_step = [there = both_there.get_future().share()](std::size_t) {
    there.wait();
  };
  Engine engine(
      [options] { return std::make_unique<FakeRunner>(options); }, nullptr,
      {.prefill_chunk = 8}
  );
  Request text;
  text.prompt = {1, 2, 3};
  text.max_tokens = 60;
  auto written = ask(engine, text);
  Ids long_one;
  for (int i = 0; i < 100; ++i) long_one.push_back(i % 30);
  auto vector = ask(engine, pooled(long_one, Pooling::last));
  both_there.set_value();
  const Heard heard = vector.get();
  EXPECT_EQ(heard.vector, FakeRunner::logits_after(long_one, 8));
  EXPECT_EQ(heard.end.cached_tokens, 0);
  EXPECT_EQ(written.get().end.made_tokens, 60);
  // The same again: nothing of it was kept, and nothing of it may be.
  EXPECT_EQ(
      ask(engine, pooled(long_one, Pooling::last)).get().vector, heard.vector
  );
  engine.drain();
  EXPECT_LE(engine.stats().steps, 80U);
  EXPECT_EQ(engine.stats().pages_in_use, 0);
}

TEST(VectorsBesideText, WhatHasNoRoomOrNoStatesIsRefused) {
  Engine engine(
      [] {
        return std::make_unique<FakeRunner>(FakeRunner::Options{.context = 16});
      },
      nullptr, {}
  );
  EXPECT_THROW(ask(engine, pooled(Ids(17, 1), Pooling::mean)), UsageError);
  EXPECT_EQ(
      ask(engine, pooled(Ids(16, 1), Pooling::mean)).get().vector.size(), 8U
  );
  Engine none(
      [] {
        return std::make_unique<FakeRunner>(FakeRunner::Options{.width = 0});
      },
      nullptr, {}
  );
  EXPECT_THROW(ask(none, pooled({1}, Pooling::mean)), UsageError);
}

TEST(Pooling, VectorsHaveALengthOfOne) {
  std::vector<float> v{3, 4}, zero{0, 0};
  scale_to_unit(v);
  scale_to_unit(zero);
  EXPECT_FLOAT_EQ(v[0], 0.6f);
  EXPECT_FLOAT_EQ(v[1], 0.8f);
  EXPECT_EQ(zero[0], 0);
}

TEST(Pooling, AModelMaySayWhich) {
  const TempFolder folder;
  EXPECT_EQ(pooling_of_model(folder.path()), Pooling::mean);
  const auto says = [&](const std::string& text) {
    folder.write("1_Pooling/config.json", text);
    return pooling_of_model(folder.path());
  };
  EXPECT_EQ(
      says(R"({"word_embedding_dimension":8,"pooling_mode_lasttoken":true})"),
      Pooling::last
  );
  EXPECT_EQ(says(R"({"pooling_mode_mean_tokens":true})"), Pooling::mean);
  EXPECT_THROW(says(R"({"pooling_mode_cls_token":true})"), UsageError);
  EXPECT_THROW(says("{"), FormatError);
}

}  // namespace
}  // namespace hearth::infer
