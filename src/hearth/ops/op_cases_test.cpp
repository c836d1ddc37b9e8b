// Every op case: its reference's gradient against central differences in
// float64, then each kernel table of this machine against the reference.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

using CaseOnTable = std::tuple<const OpCase*, const kernels::Table*>;

const Tolerances& tolerances(const OpCase& c, mx::Dtype t) {
  return t == mx::float32 ? c.float32 : c.bfloat16;
}

void expect_close(
    const Evaluated& got,
    const Evaluated& want,
    const Tolerances& t
) {
  ASSERT_EQ(got.values.size(), want.values.size());
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    EXPECT_EQ(first_difference(got.values[i], want.values[i], t.value), "")
        << "output " << i;
  }
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (std::size_t i = 0; i < want.gradients.size(); ++i) {
    EXPECT_EQ(
        first_difference(got.gradients[i], want.gradients[i], t.gradient), ""
    ) << "gradient "
      << i;
  }
}

void expect_same(const Evaluated& a, const Evaluated& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_TRUE(same_bits(a.values[i], b.values[i])) << "output " << i;
  }
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    EXPECT_TRUE(same_bits(a.gradients[i], b.gradients[i])) << "gradient " << i;
  }
}

// All in float64: what the reference computes from the very same values.
Evaluated truth(const OpCase& c, const Arrays& in, const Arrays& ct) {
  return evaluate(c, c.reference, to_float64(in), to_float64(ct));
}

class OpReference : public testing::TestWithParam<const OpCase*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

double weighted_sum(const OpCase& c, const Arrays& in, const Arrays& ct) {
  const auto out = c.reference(in);
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto a = values_of(out[i]), b = values_of(ct[i]);
    for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  }
  return sum;
}

mx::array with_element(const mx::array& a, std::size_t at, double value) {
  auto v = values_of(a);
  v[at] = value;
  return mx::array(v.data(), a.shape(), mx::float64);
}

TEST_P(OpReference, GradientMatchesCentralDifferences) {
  const OpCase& c = *GetParam();
  if (c.differentiable.empty()) GTEST_SKIP() << "no gradient";
  const auto in = c.inputs(c.sizes[0], mx::float64, 11);
  const auto ct = cotangents(c.reference(in), 101);
  const auto e = evaluate(c, c.reference, in, ct);
  for (std::size_t k = 0; k < c.differentiable.size(); ++k) {
    const auto which = static_cast<std::size_t>(c.differentiable[k]);
    const auto x = values_of(in[which]), g = values_of(e.gradients[k]);
    double largest = 0;
    for (const double v : g) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < x.size(); ++i) {
      Arrays up = in, down = in;
      up[which] = with_element(in[which], i, x[i] + c.gradient_step);
      down[which] = with_element(in[which], i, x[i] - c.gradient_step);
      const double slope =
          (weighted_sum(c, up, ct) - weighted_sum(c, down, ct)) /
          (2 * c.gradient_step);
      EXPECT_NEAR(g[i], slope, c.gradient_tolerance * std::max(1.0, largest))
          << "input " << which << " element " << i;
    }
  }
}

class OpKernel : public testing::TestWithParam<CaseOnTable> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
  const OpCase& op() const { return *std::get<0>(GetParam()); }
  const kernels::Table& table() const { return *std::get<1>(GetParam()); }
};

TEST_P(OpKernel, MatchesReference) {
  const ScopedExecution forced(table());
  clear_launched_ops();
  for (const auto dtype : op().dtypes) {
    for (const auto& size : op().sizes) {
      SCOPED_TRACE(size_name(size) + (dtype == mx::float32 ? " f32" : " bf16"));
      const auto in = op().inputs(size, dtype, 21);
      const auto ct = cotangents(op().run(in), 201);
      const auto got = evaluate(op(), op().run, in, ct);
      expect_close(got, truth(op(), in, ct), tolerances(op(), dtype));
    }
  }
  auto listed = op().primitives;
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(launched_ops(), listed) << "primitives of the case";
}

// What a GPU would run, on the CPU: values and gradients of the same graph.
class OpGpu : public testing::TestWithParam<const OpCase*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

Tolerances gpu_tolerances(const OpCase& c, mx::Dtype t) {
  return t == mx::float32 ? c.gpu_float32.value_or(c.float32)
                          : c.gpu_bfloat16.value_or(c.bfloat16);
}

TEST_P(OpGpu, MatchesReference) {
  const OpCase& c = *GetParam();
  if (!c.has_gpu) GTEST_SKIP() << "the case has no GPU's face";
  clear_launched_ops();
  for (const auto dtype : c.dtypes) {
    for (const auto& size : c.sizes) {
      SCOPED_TRACE(size_name(size) + (dtype == mx::float32 ? " f32" : " bf16"));
      const auto in = c.inputs(size, dtype, 21);
      const ScopedFace gpu(Face::gpu);
      const auto ct = cotangents(c.run(in), 201);
      const auto got = evaluate(c, c.run, in, ct);
      expect_close(got, truth(c, in, ct), gpu_tolerances(c, dtype));
    }
  }
  EXPECT_EQ(launched_ops(), std::vector<std::string>()) << "CPU primitives";
}

// Traces like mx::compile, but joins no ops: on a CPU that would call a C++
// compiler.
class TracedOnly {
 public:
  TracedOnly() { mx::set_compile_mode(mx::CompileMode::no_fuse); }
  ~TracedOnly() { mx::set_compile_mode(mx::CompileMode::enabled); }
};

// A training step is one compiled function: nothing in it may be evaluated
// while it is traced, and gradients must be sound inside, twice over (MLX's of
// a split is not).
TEST_P(OpGpu, TracesInsideOneCompiledFunction) {
  const OpCase& c = *GetParam();
  if (!c.has_gpu) GTEST_SKIP() << "the case has no GPU's face";
  if (c.differentiable.empty() || !c.only_builds) {
    GTEST_SKIP() << "no part of a training step";
  }
  const ScopedFace gpu(Face::gpu);
  const TracedOnly mode;
  const auto dtype = c.dtypes.back();
  const auto in = c.inputs(c.sizes[2], dtype, 21);
  const auto ct = cotangents(c.run(in), 201);
  // Two micro-batches, one after the other in the list of inputs.
  Arrays all;
  for (const std::uint64_t seed : {21, 31}) {
    const auto own = c.inputs(c.sizes[2], dtype, seed);
    all.insert(all.end(), own.begin(), own.end());
    all.insert(all.end(), ct.begin(), ct.end());
  }
  const auto step = [&](const Arrays& v) {
    Arrays out;
    for (auto at = v.begin(); at != v.end();) {
      const auto middle = at + static_cast<std::ptrdiff_t>(in.size());
      const auto end = middle + static_cast<std::ptrdiff_t>(ct.size());
      const auto e = unevaluated(c, c.run, {at, middle}, {middle, end});
      out.insert(out.end(), e.values.begin(), e.values.end());
      out.insert(out.end(), e.gradients.begin(), e.gradients.end());
      at = end;
    }
    return out;
  };
  Arrays want = step(all), got = mx::compile(step)(all);
  // Values may be views, which compare by their memory.
  for (auto* all_of : {&want, &got}) {
    for (auto& a : *all_of) a = mx::contiguous(a);
    mx::eval(*all_of);
  }
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(same_bits(got[i], want[i])) << "output " << i;
  }
}

// A column-major copy and a slice of something wider, with the same values.
mx::array transposed_layout(const mx::array& a) {
  if (a.ndim() < 2) return a;
  return mx::swapaxes(mx::contiguous(mx::swapaxes(a, -1, -2)), -1, -2);
}
mx::array sliced_layout(const mx::array& a) {
  if (a.ndim() == 0) return a;
  const auto last = static_cast<int>(a.ndim()) - 1;
  const auto wider = mx::concatenate({a, a}, last);
  mx::Shape start(a.ndim(), 0), stop = wider.shape();
  stop[last] = a.shape(last);
  return mx::slice(wider, start, stop);
}

TEST_P(OpKernel, DoesNotCareHowInputsAreLaidOut) {
  const ScopedExecution forced(table());
  const auto dtype = op().dtypes.back();
  for (const auto& size : {op().sizes[0], op().sizes.back()}) {
    const auto in = op().inputs(size, dtype, 31);
    const auto ct = cotangents(op().run(in), 301);
    const auto want = evaluate(op(), op().run, in, ct);
    for (auto layout : {transposed_layout, sliced_layout}) {
      Arrays in2, ct2;
      for (const auto& a : in) in2.push_back(layout(a));
      for (const auto& a : ct) ct2.push_back(layout(a));
      expect_same(evaluate(op(), op().run, in2, ct2), want);
    }
  }
}

TEST_P(OpKernel, DoesNotCareHowManyThreadsThereAre) {
  const auto dtype = op().dtypes.back();
  const auto in = op().inputs(op().sizes.back(), dtype, 41);
  const auto ct = cotangents(op().run(in), 401);
  ThreadPool one(1), three(3);
  const auto on = [&](ThreadPool& pool) {
    const ScopedExecution forced(table(), &pool);
    auto e = evaluate(op(), op().run, in, ct);
    mx::synchronize();
    return e;
  };
  expect_same(on(one), on(three));
}

mx::array with_float(const mx::array& a, std::size_t at, float value) {
  auto v = mx::astype(a, mx::float32);
  v = mx::add(v, mx::array(0.0f));
  v.eval();
  v.data<float>()[at] = value;
  return mx::astype(v, a.dtype());
}

// The kind of each element: 0 finite, 1 infinite, 2 NaN.
std::vector<int> kinds(const mx::array& a) {
  std::vector<int> out;
  for (const double v : values_of(a)) {
    out.push_back(std::isnan(v) ? 2 : std::isinf(v) ? 1 : 0);
  }
  return out;
}
// Gradients are sums whose order is the kernel's own, and infinities of both
// signs meet there: what is asked is that no broken element looks sound.
std::vector<bool> finite(const mx::array& a) {
  std::vector<bool> out;
  for (const double v : values_of(a)) out.push_back(std::isfinite(v));
  return out;
}

TEST_P(OpKernel, PropagatesNanAndInfinity) {
  if (!op().check_special_values) GTEST_SKIP() << "the case opts out";
  const ScopedExecution forced(table());
  const auto clean = op().inputs(op().sizes[2], op().dtypes[0], 51);
  const auto ct = cotangents(op().run(clean), 501);
  for (std::size_t k = 0; k < clean.size(); ++k) {
    if (!mx::issubdtype(clean[k].dtype(), mx::floating)) continue;
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      SCOPED_TRACE("input " + std::to_string(k) + " " + std::to_string(bad));
      Arrays in = clean;
      in[k] = with_float(in[k], clean[k].size() / 2, bad);
      const auto got = evaluate(op(), op().run, in, ct);
      // In float32, as overflow is part of the answer.
      const auto want = evaluate(op(), op().reference, in, ct);
      for (std::size_t i = 0; i < want.values.size(); ++i) {
        EXPECT_EQ(kinds(got.values[i]), kinds(want.values[i]))
            << "output " << i;
      }
      for (std::size_t i = 0; i < want.gradients.size(); ++i) {
        EXPECT_EQ(finite(got.gradients[i]), finite(want.gradients[i]))
            << "gradient " << i;
      }
    }
  }
}

// Every allocation in turn is refused; the evaluation after it is right.
TEST_P(OpKernel, IsRightAfterARefusedAllocation) {
  if (!op().allocates) GTEST_SKIP() << "it takes no memory";
  const ScopedExecution forced(table());
  const auto in = op().inputs(op().sizes[2], op().dtypes.back(), 61);
  const auto ct = cotangents(op().run(in), 601);
  const auto want = evaluate(op(), op().run, in, ct);
  int refused = 0;
  for (int nth = 1; nth < 50; ++nth) {
    fail_memory_charge(nth);
    bool threw = false;
    try {
      evaluate(op(), op().run, in, ct);
    } catch (const OutOfMemory&) {
      threw = true;
    }
    fail_memory_charge(0);
    expect_same(evaluate(op(), op().run, in, ct), want);
    if (!threw) break;
    ++refused;
  }
  EXPECT_GT(refused, 0) << "an op must ask before it allocates";
}

// Every op that is named in this folder is listed by a case.
TEST(OpCases, EveryPrimitiveHasACase) {
  namespace fs = std::filesystem;
  std::set<std::string> listed;
  for (const auto& c : op_cases()) {
    listed.insert(c.primitives.begin(), c.primitives.end());
  }
  const std::regex named(R"(\n  HEARTH_OP_NAME\((\w+)\))");
  int found = 0;
  for (const auto& file :
       fs::recursive_directory_iterator(HEARTH_SOURCE_DIR "/src/hearth/ops")) {
    if (file.path().string().ends_with("_test.cpp")) continue;
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator m(source.begin(), source.end(), named), end;
         m != end; ++m) {
      ++found;
      EXPECT_TRUE(listed.contains((*m)[1].str()))
          << (*m)[1] << " of " << file.path() << " has no op case";
    }
  }
  EXPECT_GT(found, 0);
}

TEST(OpCases, NamesAreUnique) {
  std::set<std::string> names;
  for (const auto& c : op_cases()) EXPECT_TRUE(names.insert(c.name).second);
}

std::vector<const OpCase*> all_cases() {
  std::vector<const OpCase*> out;
  for (const auto& c : op_cases()) out.push_back(&c);
  return out;
}

std::vector<const kernels::Table*> usable() {
  const auto all = kernels::usable_tables();
  return {all.begin(), all.end()};
}

// With HEARTH_ISA set, the table it names alone, or none when this machine
// cannot run it; else every usable one.
std::vector<const kernels::Table*> tables_to_test() {
  const char* wanted = std::getenv("HEARTH_ISA");
  if (wanted == nullptr) return usable();
  std::vector<const kernels::Table*> out = usable();
  std::erase_if(out, [&](auto* t) { return std::string(t->isa) != wanted; });
  return out;
}

// `ctest -L isa` runs this under each HEARTH_ISA: the table it names, and no
// other, is what ops run with.
TEST(Isa, TheForcedTableIsLive) {
  const char* wanted = std::getenv("HEARTH_ISA");
  if (wanted == nullptr) GTEST_SKIP() << "HEARTH_ISA is not set";
  if (tables_to_test().empty()) GTEST_SKIP() << "not an ISA of this machine";
  EXPECT_STREQ(current_execution().kernels.isa, wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Ops,
    OpReference,
    testing::ValuesIn(all_cases()),
    [](const auto& p) { return p.param->name; }
);
INSTANTIATE_TEST_SUITE_P(
    Ops,
    OpGpu,
    testing::ValuesIn(all_cases()),
    [](const auto& p) { return p.param->name; }
);
INSTANTIATE_TEST_SUITE_P(
    Ops,
    OpKernel,
    testing::Combine(
        testing::ValuesIn(all_cases()),
        testing::ValuesIn(tables_to_test())
    ),
    [](const auto& p) {
      return std::get<0>(p.param)->name + "_" + std::get<1>(p.param)->isa;
    }
);

}  // namespace
}  // namespace hearth::ops
