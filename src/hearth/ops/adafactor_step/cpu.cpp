// The Adafactor step over our kernels, in place.
#include <algorithm>
#include <cmath>
#include <vector>

#include "hearth/kernels/table.h"
#include "hearth/ops/adafactor_step/faces_impl.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {
namespace {

constexpr const char* kName = "Adafactor";

// Rows are summed in blocks of one size, whoever takes them, and the blocks in
// order: so no sum depends on the number of threads.
constexpr long kBlockRows = 256;

class Step {
 public:
  Step(const Adafactor& h, long step, const Parameter& p, AdafactorState& s)
      : hyper_(h),
        p_(p),
        shape_(p.weight.shape()),
        beta2_(1 - std::pow(static_cast<double>(step), double{h.decay_rate})),
        row_means_(s.rows.data<float>()),
        column_means_(s.columns.data<float>()),
        m_(s.m ? s.m->data<float>() : nullptr),
        blocks_((shape_.rows + kBlockRows - 1) / kBlockRows) {}

  void run() {
    double size = 1;
    if (hyper_.scale_by_size) {
      const double squares = sum_squares({&p_.weight, 1});
      size = root_mean(squares);
      if (size < double{hyper_.least_size}) size = double{hyper_.least_size};
    }
    double squares = 0;
    with_dtype(kName, p_.gradient.dtype(), [&](auto* t) {
      const auto stream = mx::default_stream(mx::Device::cpu);
      run_on_stream(kName, stream, [&](const Execution& e) {
        const auto& f = e.kernels.adafactor->of(t);
        update_means(e.pool, f, t);
        make_factors();
        squares = update_squares(e.pool, f, t);
      });
    });
    const double over = root_mean(squares) / double{hyper_.clip};
    // NaN stays NaN, so that a broken step shows.
    const double clip = over <= 1 ? 1 : over;
    apply(double{hyper_.lr} * size, clip);
  }

 private:
  const Adafactor& hyper_;
  const Parameter& p_;
  const Matrices shape_;
  const double beta2_;
  float *row_means_, *column_means_, *m_;
  const long blocks_;
  std::vector<float> row_factors_, column_factors_;

  double root_mean(double squares) const {
    return std::sqrt(squares / static_cast<double>(p_.weight.size()));
  }
  template <class G>
  kernels::FactoredGrad<G> matrix(long index, G*) const {
    const G* g = p_.gradient.data<G>();
    return {
        g + index * shape_.rows * shape_.columns, p_.gradient_scale,
        shape_.columns
    };
  }
  // Calls f(matrix, block, begin, end) for every block of rows.
  template <class F>
  void each_block(ThreadPool& pool, F f) const {
    const long all = shape_.count * blocks_;
    pool.parallel_for(
        static_cast<std::size_t>(all), 1,
        [&](std::size_t from, std::size_t to) {
          for (auto i = static_cast<long>(from); i < static_cast<long>(to);
               ++i) {
            const long begin = i % blocks_ * kBlockRows;
            f(i / blocks_, i, begin, std::min(shape_.rows, begin + kBlockRows));
          }
        }
    );
  }
  void blend(float& mean, double value) const {
    mean = static_cast<float>(beta2_ * double{mean} + (1 - beta2_) * value);
  }

  template <class F, class G>
  void update_means(ThreadPool& pool, const F& f, G* t) {
    const long rows = shape_.rows, columns = shape_.columns;
    std::vector<float> row_sums(static_cast<std::size_t>(shape_.count * rows));
    std::vector<float> column_sums(
        static_cast<std::size_t>(shape_.count * blocks_ * columns)
    );
    each_block(pool, [&](long index, long block, long begin, long end) {
      f.squares(
          matrix(index, t), hyper_.eps, row_sums.data() + index * rows,
          column_sums.data() + block * columns, begin, end
      );
    });
    for (std::size_t i = 0; i < row_sums.size(); ++i) {
      blend(row_means_[i], double{row_sums[i]} / static_cast<double>(columns));
    }
    for (long index = 0; index < shape_.count; ++index) {
      const float* first = column_sums.data() + index * blocks_ * columns;
      for (long j = 0; j < columns; ++j) {
        double sum = 0;
        for (long b = 0; b < blocks_; ++b)
          sum += double{first[b * columns + j]};
        blend(
            column_means_[index * columns + j], sum / static_cast<double>(rows)
        );
      }
    }
  }

  void make_factors() {
    const auto rows = static_cast<std::size_t>(shape_.rows);
    const auto all = static_cast<std::size_t>(shape_.count) * rows;
    row_factors_.assign(all, 1.0f);
    for (std::size_t first = 0; shape_.factored && first < all; first += rows) {
      double mean = 0;
      for (std::size_t i = 0; i < rows; ++i)
        mean += double{row_means_[first + i]};
      mean /= static_cast<double>(rows);
      for (std::size_t i = first; i < first + rows; ++i) {
        row_factors_[i] =
            static_cast<float>(std::sqrt(mean / double{row_means_[i]}));
      }
    }
    column_factors_.resize(
        static_cast<std::size_t>(shape_.count * shape_.columns)
    );
    for (std::size_t i = 0; i < column_factors_.size(); ++i) {
      column_factors_[i] = 1 / std::sqrt(column_means_[i]);
    }
  }

  template <class F, class G>
  double update_squares(ThreadPool& pool, const F& f, G* t) {
    std::vector<float> sums(row_factors_.size());
    const long rows = shape_.rows;
    each_block(pool, [&](long index, long, long begin, long end) {
      f.sizes(
          matrix(index, t), row_factors_.data() + index * rows,
          column_factors_.data() + index * shape_.columns,
          sums.data() + index * rows, begin, end
      );
    });
    double total = 0;
    for (const float x : sums) total += double{x};
    return total;
  }

  void apply(double lr, double clip) {
    const kernels::AdafactorArgs a{
        static_cast<float>(lr / clip),
        static_cast<float>(1 - lr * double{hyper_.decay}), hyper_.beta1
    };
    const auto family = [](const kernels::Table& t) -> const auto& {
      return *t.adafactor;
    };
    const long size = shape_.rows * shape_.columns;
    step_over(
        kName, p_, family, [&](auto& f, auto& args, long begin, long end) {
          while (begin < end) {
            const long index = begin / size;
            const long stop = std::min(end, (index + 1) * size);
            f.apply(
                a, args, shape_.columns, row_factors_.data(),
                column_factors_.data() + index * shape_.columns, m_, begin, stop
            );
            begin = stop;
          }
        }
    );
  }
};

}  // namespace

void adafactor_step_cpu(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
) {
  Step(hyper, step, p, s).run();
}

}  // namespace hearth::ops
