// Checks linear layers of one input and chooses the form that runs them.
#include "hearth/ops/linears/op.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/linear/cpu_operand.h"
#include "hearth/ops/linears/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError("[ops.linears] " + what);
}

void check_shape(
    const char* what,
    const mx::array& a,
    const mx::Shape& expected
) {
  if (a.shape() == expected) return;
  refuse(
      fmt::format(
          "{} must have shape [{}], got [{}]", what, fmt::join(expected, ", "),
          fmt::join(a.shape(), ", ")
      )
  );
}

void check_packed(const char* what, const Packed& packed, const mx::array& w) {
  if (!packed || (packed->n() == w.shape(0) && packed->k() == w.shape(1)))
    return;
  refuse(
      fmt::format(
          "the packed form of {} must be of its shape [{}], got [{}, {}]", what,
          fmt::join(w.shape(), ", "), packed->n(), packed->k()
      )
  );
}

// A weight that is only packed decides which kernels multiply.
void check_alone(
    const mx::array& x,
    const LinearPart& part,
    const GemmFamily*& family
) {
  if (!part.packed) refuse("a part must have w or packed, got neither");
  if (family && family != &part.packed->family()) {
    refuse("weights that are only packed must be packed for the same kernels");
  }
  family = &part.packed->family();
  const bool bf16 = family->operand == kernels::GemmScalar::bf16;
  if (x.shape(-1) == part.packed->k() &&
      x.dtype() == (bf16 ? mx::bfloat16 : mx::float32))
    return;
  refuse(
      fmt::format(
          "x must have shape [..., {}] and the dtype packed was made for, got "
          "[{}]",
          part.packed->k(), fmt::join(x.shape(), ", ")
      )
  );
}

int columns_of(const LinearPart& part) {
  return part.w ? part.w->shape(0) : static_cast<int>(part.packed->n());
}

void check(const mx::array& x, const std::vector<LinearPart>& parts) {
  if (x.ndim() == 0) refuse("x must have a last dimension, got a scalar");
  const int k = x.shape(-1);
  const GemmFamily* family = nullptr;
  std::size_t terms = 0;
  for (const LinearPart& part : parts) {
    terms += part.adapter ? 2 : 1;
    if (part.w) {
      if (part.w->ndim() != 2) refuse("w must have two dimensions");
      check_shape("w", *part.w, {part.w->shape(0), k});
      check_packed("w", part.packed, *part.w);
    } else {
      check_alone(x, part, family);
    }
    const int n = columns_of(part);
    if (part.bias) check_shape("bias", *part.bias, {n});
    if (!part.adapter) continue;
    const auto &a = part.adapter->a, &b = part.adapter->b;
    if (a.ndim() != 2) refuse("an adapter's a must have two dimensions");
    check_shape("an adapter's a", a, {a.shape(0), k});
    check_shape("an adapter's b", b, {n, a.shape(0)});
    check_packed("an adapter's a", part.adapter->packed_a, a);
    check_packed("an adapter's b", part.adapter->packed_b, b);
  }
  if (terms == 0 || terms > kMostLinears) {
    refuse(
        fmt::format(
            "there must be 1 to {} parts and adapters, got {}", kMostLinears,
            terms
        )
    );
  }
}

void require_weights(const std::vector<LinearPart>& parts) {
  const auto packed_alone = [](const LinearPart& p) { return !p.w; };
  if (std::ranges::any_of(parts, packed_alone)) {
    refuse("a weight that is only packed must be on a CPU stream");
  }
}

}  // namespace

Arrays linears(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
) {
  check(x, parts);
  const Face face = face_of(s, x.dtype());
  if (face == Face::kernels) return linears_cpu(x, parts, s);
  require_weights(parts);
  return face == Face::gpu ? linears_gpu(x, parts, s)
                           : linears_reference(x, parts, s);
}

}  // namespace hearth::ops
