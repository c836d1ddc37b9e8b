#pragma once
// One kernel out of several of MLX's element-wise ops, where a GPU runs them.
//
// mx::compile traces a function once for each set of shapes and joins what it
// can into one kernel. It is for GPU streams alone: on a CPU it would call a
// C++ compiler while the program runs. What it is given must be a pure function
// of its inputs: no eval(), no item(), no decision that hangs on values.
//
// MLX runs a compiled function as it was written where its inputs are being
// traced already, by an outer mx::compile or by a gradient. So it is safe to
// nest, and inside a compiled training step it changes nothing: there the step
// as a whole is joined.
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Whether `compiled` compiles on this stream.
bool compiles(mx::StreamOrDevice s);

namespace internal {

// A constant as what tells compiled functions apart.
template <class C>
std::uint64_t constant_word(C c) {
  if constexpr (std::is_same_v<C, float>) {
    return std::bit_cast<std::uint32_t>(c);
  } else if constexpr (std::is_same_v<C, double>) {
    return std::bit_cast<std::uint64_t>(c);
  } else if constexpr (std::is_same_v<C, mx::Dtype>) {
    return static_cast<std::uint64_t>(c.val());
  } else {
    static_assert(std::is_integral_v<C> || std::is_enum_v<C>);
    return static_cast<std::uint64_t>(c);
  }
}

Arrays run_compiled(
    std::function<Arrays(const Arrays&)> f,
    std::uintptr_t id,
    std::vector<std::uint64_t> constants,
    const Arrays& inputs,
    mx::Stream s
);

}  // namespace internal

// f(inputs, s, constants...), compiled where s is a GPU's. f is an ordinary
// function: what it knows comes through its inputs and through constants, which
// are numbers, enumerators and dtypes. Each new combination of constants,
// shapes and dtypes is traced once for each thread and kept, so what changes
// from step to step must be an array.
template <class... C>
Arrays compiled(
    Arrays (*f)(const Arrays&, mx::StreamOrDevice, C...),
    const Arrays& inputs,
    mx::StreamOrDevice s,
    std::type_identity_t<C>... constants
) {
  if (!compiles(s)) return f(inputs, s, constants...);
  const auto stream = mx::to_stream(s);
  return internal::run_compiled(
      [=](const Arrays& in) { return f(in, stream, constants...); },
      reinterpret_cast<std::uintptr_t>(f),
      {internal::constant_word(constants)...}, inputs, stream
  );
}

}  // namespace hearth::ops
