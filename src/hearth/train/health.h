#pragma once
// Whether a step's loss and gradient norm are fit to be applied. Pure logic:
// what a decision needs done is the loop's business.
#include <cstdint>
#include <deque>
#include <string>

#include "hearth/base/config.h"
#include "hearth/base/json.h"

namespace hearth::train {

struct HealthConfig {
  bool enabled = true;
  std::int64_t window = 64;
  std::int64_t least = 20;
  double z = 6;
  std::int64_t in_a_row = 3;
  std::int64_t roll_backs = 1;
  double lr_factor = 0.5;

  void fields(FieldVisitor& v);
};

enum class HealthAction : unsigned char {
  apply,
  skip,       // leave the step out and go on with the next batch
  roll_back,  // go back to the last good checkpoint, with the smaller rate
  stop,
};
const char* name_of(HealthAction action);

struct HealthVerdict {
  HealthAction action = HealthAction::apply;
  std::string reason;  // one sentence, empty for apply
  long since = 0;      // the first of the bad steps in a row; 0 for apply
};

// A reading is bad when it is not finite, or stands z robust deviations above
// the median of the last good ones (the norm's logarithm is judged; nothing is
// judged before `least` good steps). Bad steps are skipped; the third in a row
// rolls back; the third in a row again soon afterwards stops. A norm that
// stays high beside an ordinary loss is taken for the new usual at the third
// step: clipping limits it, and skipping would never end. Losses are judged as
// before then. With enabled off only what is not finite is bad.
//
// float16 overflows on purpose: ask LossScale first and judge the rest.
class Health {
 public:
  explicit Health(HealthConfig config);

  HealthVerdict judge(long step, double loss, double gradient_norm);

  // What the schedule's rate is multiplied by: 1 until a roll-back. It and the
  // counts must not be rolled back with the weights.
  double lr_factor() const { return lr_factor_; }
  // The step that a row of bad ones began with; 0 while the last was good.
  long trouble() const { return trouble_; }

  Json state() const;
  // Throws FormatError when it is no such state.
  void restore(const Json& state);

 private:
  HealthConfig config_;
  std::deque<double> losses_, norms_;  // of good steps; norms as logarithms
  long bad_in_a_row_ = 0, trouble_ = 0;
  long norms_in_a_row_ = 0;  // steps with a bad norm beside a good loss
  long roll_backs_ = 0;
  long good_since_roll_back_ = 0;
  double lr_factor_ = 1;

  struct Complaint {
    std::string what;  // empty: none
    bool norm_alone = false;
  };
  Complaint complaint(double loss, double gradient_norm) const;
  bool known(const std::deque<double>& values) const;
  void note_good(double loss, double gradient_norm);
};

}  // namespace hearth::train
