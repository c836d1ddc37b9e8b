#include "hearth/train/validation.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/train/gradient.h"

namespace hearth::train {

Validation validate(const Session& session, std::uint32_t rows) {
  data::Loader loader(session.cache, session.valid_loader());
  data::Batch batch;
  double loss = 0, weight = 0;
  Validation v;
  const std::uint32_t together = session.objective->row_group();
  rows = std::max(together, rows - rows % together);
  const auto most =
      static_cast<std::uint64_t>(session.recipe.train.eval_tokens);
  while (v.tokens < most && loader.next(batch)) {
    for (std::uint32_t begin = 0; begin < batch.rows;) {
      const std::uint32_t end = std::min(begin + rows, batch.rows);
      try {
        const auto part = loss_of(
            *session.model, *session.objective,
            make_micro_batch(batch, begin, end), session.compute
        );
        loss += part.loss_sum;
        weight += part.weight_sum;
        begin = end;
      } catch (const OutOfMemory&) {
        mx::clear_cache();
        if (rows <= together) throw;
        rows = (rows / together + 1) / 2 * together;
      }
    }
    v.tokens += batch.trained;
  }
  v.loss = weight > 0 ? loss / weight : 0;
  return v;
}

}  // namespace hearth::train
