#include "hearth/optim/optimizer_reference_test.h"

#include <algorithm>
#include <cmath>

namespace hearth::optim {
namespace {

using Numbers = std::vector<double>;

struct AdamWReference {
  double beta1, beta2, eps;
  Numbers m, v;

  void operator()(
      Numbers& w,
      const Numbers& g,
      long step,
      double lr,
      double decay
  ) {
    m.resize(w.size()), v.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(beta1, step));
      const double square = v[i] / (1 - std::pow(beta2, step));
      w[i] -= lr * (mean / (std::sqrt(square) + eps) + decay * w[i]);
    }
  }
};

struct LionReference {
  double beta1, beta2;
  Numbers m;

  void operator()(Numbers& w, const Numbers& g, long, double lr, double decay) {
    m.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double c = beta1 * m[i] + (1 - beta1) * g[i];
      w[i] -= lr * ((c > 0) - (c < 0) + decay * w[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * g[i];
    }
  }
};

double root_mean_square(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// As the paper has it, with an external rate.
struct AdafactorReference {
  AdafactorConfig config;
  std::size_t rows, columns;
  bool factored;
  Numbers row_means, column_means, means, mean_update;

  Numbers second_moment(const Numbers& g, double beta2) {
    Numbers out(g.size());
    row_means.resize(rows), column_means.resize(columns);
    means.resize(g.size());
    if (!factored) {
      for (std::size_t i = 0; i < g.size(); ++i) {
        means[i] = beta2 * means[i] + (1 - beta2) * (g[i] * g[i] + 1e-30);
      }
      return means;
    }
    Numbers by_row(rows), by_column(columns);
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double square = g[i] * g[i] + 1e-30;
      by_row[i / columns] += square / static_cast<double>(columns);
      by_column[i % columns] += square / static_cast<double>(rows);
    }
    double total = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      row_means[i] = beta2 * row_means[i] + (1 - beta2) * by_row[i];
      total += row_means[i] / static_cast<double>(rows);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      column_means[j] = beta2 * column_means[j] + (1 - beta2) * by_column[j];
    }
    for (std::size_t i = 0; i < g.size(); ++i) {
      out[i] = row_means[i / columns] * column_means[i % columns] / total;
    }
    return out;
  }

  void operator()(
      Numbers& w,
      const Numbers& g,
      long step,
      double lr,
      double decay
  ) {
    const double beta2 =
        1 - std::pow(static_cast<double>(step), -config.decay_rate);
    const Numbers square = second_moment(g, beta2);
    Numbers update(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      update[i] = g[i] / std::sqrt(square[i]);
    }
    if (config.scale_by_size) lr *= std::max(1e-3, root_mean_square(w));
    const double down = std::max(1.0, root_mean_square(update) / config.clip);
    mean_update.resize(g.size());
    const double beta1 = config.momentum;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double u = lr * update[i] / down;
      mean_update[i] = beta1 * mean_update[i] + (1 - beta1) * u;
      w[i] = w[i] * (1 - lr * decay) - mean_update[i];
    }
  }
};

// Row-major.
struct Matrix {
  std::size_t rows, columns;
  Numbers at;

  Matrix transposed() const {
    Matrix out{columns, rows, Numbers(at.size())};
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        out.at[j * rows + i] = at[i * columns + j];
      }
    }
    return out;
  }
  Matrix times(const Matrix& b) const {
    Matrix out{rows, b.columns, Numbers(rows * b.columns)};
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < columns; ++k) {
        for (std::size_t j = 0; j < b.columns; ++j) {
          out.at[i * b.columns + j] +=
              at[i * columns + k] * b.at[k * b.columns + j];
        }
      }
    }
    return out;
  }
};

// x -> a x + (b x x^T + c (x x^T)^2) x on x / |x|.
Matrix newton_schulz(Matrix x, long steps) {
  const bool tall = x.rows > x.columns;
  if (tall) x = x.transposed();
  double norm = 0;
  for (const double v : x.at) norm += v * v;
  for (double& v : x.at) v /= std::sqrt(norm) + 1e-7;
  for (long s = 0; s < steps; ++s) {
    const Matrix a = x.times(x.transposed());
    Matrix b = a.times(a);
    for (std::size_t i = 0; i < b.at.size(); ++i) {
      b.at[i] = -4.7750 * a.at[i] + 2.0315 * b.at[i];
    }
    const Matrix bx = b.times(x);
    for (std::size_t i = 0; i < x.at.size(); ++i) {
      x.at[i] = 3.4445 * x.at[i] + bx.at[i];
    }
  }
  return tall ? x.transposed() : x;
}

struct MuonReference {
  MuonConfig config;
  std::size_t rows, columns;
  Numbers m;

  void operator()(Numbers& w, const Numbers& g, long, double lr, double decay) {
    m.resize(w.size());
    Matrix update{rows, columns, Numbers(w.size())};
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = config.momentum * m[i] + g[i];
      update.at[i] = config.nesterov ? g[i] + config.momentum * m[i] : m[i];
    }
    update = newton_schulz(std::move(update), config.steps);
    const double size =
        config.rms * std::sqrt(static_cast<double>(std::max(rows, columns)));
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] -= lr * (size * update.at[i] + decay * w[i]);
    }
  }
};

}  // namespace

ReferenceRule reference_rule(const OptimConfig& config, const nn::Weight& p) {
  const auto [beta1, beta2] = config.betas_or_default();
  const bool matrix = p.shape.size() == 2;
  const auto columns = static_cast<std::size_t>(p.shape.back());
  const std::size_t rows = p.elements() / columns;
  if (config.name == "lion") return LionReference{beta1, beta2, {}};
  if (config.name == "adafactor") {
    return AdafactorReference{
        config.adafactor, rows, columns, matrix, {}, {}, {}, {}
    };
  }
  const bool embedding = p.name.find("embed_tokens") != std::string::npos;
  if (config.name == "muon" && matrix && !embedding) {
    return MuonReference{config.muon, rows, columns, {}};
  }
  return AdamWReference{beta1, beta2, config.eps, {}, {}};
}

}  // namespace hearth::optim
