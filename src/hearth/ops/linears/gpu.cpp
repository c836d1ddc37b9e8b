// Linear layers of one input as a GPU runs them. Products stay apart: joining
// them would copy what is read apart. An adapter adds to the layer's rows
// before they are rounded again, and its scale is applied where rows are as
// short as its rank.
#include <mlx/transforms.h>

#include "hearth/ops/linear/faces_impl.h"
#include "hearth/ops/linears/faces_impl.h"

namespace hearth::ops {
namespace {

struct PartLayout {
  bool bias = false, adapter = false;
  float scale = 1;  // the adapter's
};

// x, then of every part w[, bias][, a, b]. Forward gives every y and then, of
// those with an adapter, scale x a^T, which their gradient reads.
struct PartProducts {
  mx::StreamOrDevice s;
  std::vector<PartLayout> parts;

  mx::array like(const mx::array& w, const mx::array& x) const {
    return mx::astype(w, x.dtype(), s);
  }
  mx::array transposed(const mx::array& w, const mx::array& x) const {
    return mx::transpose(like(w, x), s);
  }
  mx::array times(const mx::array& a, float factor) const {
    if (factor == 1) return a;
    const auto by = mx::array(static_cast<double>(factor), a.dtype());
    return mx::multiply(a, by, s);
  }

  Arrays operator()(const Arrays& in) const {
    const auto& x = in[0];
    Arrays out, inner;
    std::size_t at = 1;
    for (const PartLayout& part : parts) {
      const auto w = transposed(in[at++], x);
      auto y = part.bias ? mx::addmm(like(in[at++], x), x, w, 1, 1, s)
                         : mx::matmul(x, w, s);
      if (part.adapter) {
        inner.push_back(
            times(mx::matmul(x, transposed(in[at], x), s), part.scale)
        );
        y = mx::addmm(y, inner.back(), transposed(in[at + 1], x), 1, 1, s);
        at += 2;
      }
      out.push_back(y);
    }
    out.insert(out.end(), inner.begin(), inner.end());
    return out;
  }

  // One for each of `in`. What nobody asked for is never computed.
  Arrays gradients(
      const Arrays& in,
      const Arrays& dys,
      const Arrays& out
  ) const {
    const auto& x = in[0];
    Arrays by_input{x};
    std::optional<mx::array> dx;
    const auto add_product = [&](const mx::array& a, const mx::array& b) {
      dx = dx ? mx::addmm(*dx, a, b, 1, 1, s) : mx::matmul(a, b, s);
    };
    const auto put = [&](const mx::array& gradient) {
      by_input.push_back(mx::astype(gradient, in[by_input.size()].dtype(), s));
    };
    std::size_t inner = parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& dy = dys[i];
      add_product(dy, like(in[by_input.size()], x));
      put(weight_gradient_gpu(dy, x, s));
      if (parts[i].bias) put(bias_gradient_gpu(dy, s));
      if (!parts[i].adapter) continue;
      const auto &a = in[by_input.size()], &b = in[by_input.size() + 1];
      const auto d_inner = times(mx::matmul(dy, like(b, x), s), parts[i].scale);
      add_product(d_inner, like(a, x));
      put(weight_gradient_gpu(d_inner, x, s));
      put(weight_gradient_gpu(dy, out[inner++], s));
    }
    by_input[0] = *dx;
    return by_input;
  }
};

}  // namespace

Arrays linears_gpu(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
) {
  Arrays in{x};
  PartProducts f{s, {}};
  for (const LinearPart& part : parts) {
    in.push_back(*part.w);
    if (part.bias) in.push_back(*part.bias);
    PartLayout layout{part.bias.has_value(), part.adapter.has_value(), 1};
    if (part.adapter) {
      in.push_back(part.adapter->a), in.push_back(part.adapter->b);
      layout.scale = part.adapter->scale;
    }
    f.parts.push_back(layout);
  }
  const auto back = [f](const Arrays& p, const Arrays& ct, const Arrays& out) {
    return f.gradients(p, ct, out);
  };
  auto out = mx::custom_vjp(f, back)(in);
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(parts.size()), out.end());
  return out;
}

}  // namespace hearth::ops
