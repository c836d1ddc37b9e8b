#pragma once
// What the tests of op cases share: running a case with gradients, comparing,
// and spoiling its inputs.
#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "hearth/ops/op_case.h"

namespace hearth::ops {

inline mx::array to_float64(const mx::array& a) {
  return mx::issubdtype(a.dtype(), mx::floating)
             ? mx::astype(a, mx::float64, mx::Device::cpu)
             : a;
}

inline Arrays to_float64(const Arrays& all) {
  Arrays out;
  for (const auto& a : all) out.push_back(to_float64(a));
  return out;
}

// Fixed weights for the outputs: the gradient that is checked is that of their
// weighted sum.
inline Arrays cotangents(const Arrays& outputs, std::uint64_t seed) {
  Arrays out;
  for (const auto& o : outputs) {
    out.push_back(normal_input(o.shape(), o.dtype(), seed++));
  }
  return out;
}

struct Evaluated {
  Arrays values, gradients;
};

// Values of f and gradients with respect to the case's differentiable inputs,
// as a graph.
inline Evaluated unevaluated(
    const OpCase& c,
    const ArraysFunction& f,
    const Arrays& in,
    const Arrays& ct
) {
  Arrays primals;
  for (const int i : c.differentiable) primals.push_back(in[i]);
  const auto of_primals = [&](const Arrays& p) {
    Arrays all = in;
    for (std::size_t i = 0; i < p.size(); ++i) {
      all[static_cast<std::size_t>(c.differentiable[i])] = p[i];
    }
    return f(all);
  };
  Evaluated e;
  if (primals.empty()) {
    e.values = f(in);
  } else {
    std::tie(e.values, e.gradients) = mx::vjp(of_primals, primals, ct);
  }
  return e;
}

// The same, evaluated.
inline Evaluated evaluate(
    const OpCase& c,
    const ArraysFunction& f,
    const Arrays& in,
    const Arrays& ct
) {
  auto e = unevaluated(c, f, in, ct);
  Arrays all = e.values;
  all.insert(all.end(), e.gradients.begin(), e.gradients.end());
  mx::eval(all);
  return e;
}

inline std::vector<double> values_of(const mx::array& a) {
  auto d = mx::contiguous(
      mx::astype(a, mx::float64, mx::Device::cpu), false, mx::Device::cpu
  );
  d.eval();
  return {d.data<double>(), d.data<double>() + d.size()};
}

// The first element outside the tolerance, or an empty string.
inline std::string first_difference(
    const mx::array& got,
    const mx::array& want,
    Tolerance t
) {
  if (got.shape() != want.shape()) return "shapes differ";
  const auto a = values_of(got), b = values_of(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double limit = t.absolute + t.relative * std::abs(b[i]);
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
    if (std::abs(a[i] - b[i]) <= limit && !std::isinf(b[i])) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(a[i]) +
           ", want " + std::to_string(b[i]) + " within " +
           std::to_string(limit);
  }
  return {};
}

inline bool same_bits(const mx::array& a, const mx::array& b) {
  return a.nbytes() == b.nbytes() && a.flags().row_contiguous &&
         b.flags().row_contiguous &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

inline std::string size_name(const Size& size) {
  std::string out;
  for (const int n : size) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out;
}

}  // namespace hearth::ops
