// A session's model is held as the planner counts it: whether all packed copies
// of what is trained are kept or the head's alone.
#include "hearth/train/loop/session.h"

#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/plan/weight_memory.h"

namespace hearth::train {
namespace {

class SessionForms : public TrainerCase {};

TEST_F(SessionForms, AreThePlannedOnes) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU holds no packed companions";
  for (const bool all : {true, false}) {
    SCOPED_TRACE(all);
    const Session s =
        open({std::string("train.packed=") + (all ? "all" : "head")});
    std::size_t packed = 0;
    for (const PlannedWeight& w : planned_weights(
             models::Blueprint(s.model->config()), {}, {}, false, all
         )) {
      const nn::Weight& p = s.model->parameters().at(w.spec.name);
      EXPECT_EQ(p.packed() != nullptr, w.forms.packed.has_value()) << p.name;
      EXPECT_EQ(p.value().size() > 0, w.forms.value.has_value()) << p.name;
      if (p.packed()) ++packed;
    }
    // The head; with the seven matrices of the one block.
    EXPECT_EQ(packed, all ? 8u : 1u);
  }
}

}  // namespace
}  // namespace hearth::train
