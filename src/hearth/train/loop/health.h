#pragma once
// Whether a step's loss and gradient norm are fit to be applied. Pure logic:
// what a decision needs done is the loop's business.
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "hearth/base/config.h"
#include "hearth/base/json.h"
#include "hearth/train/step/step.h"

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
// the median of the last good ones of rows as long: short rows have other
// losses than long ones (the norm's logarithm is judged; nothing is judged
// before `least` good steps of that length). Bad steps are skipped; the third
// in a row, of all steps or of those of one length, rolls back; the third in a
// row again soon afterwards stops. A norm that stays high beside an ordinary
// loss is taken for the new usual at the third step: clipping limits it, and
// skipping would never end. Losses are judged as before then. With enabled off
// only what is not finite is bad.
//
// float16 overflows on purpose: ask LossScale first and judge the rest.
class Health {
 public:
  explicit Health(HealthConfig config);

  // Beyond these the next step of rows of that length is bad and must be left
  // out. A run whose rows have one length need not tell it.
  StepLimits limits(std::uint32_t length = 0) const;
  // What follows from a step that was held against limits(), which may have
  // been some steps ago: whoever works ahead asks when the step is sent, and
  // tells here how it went and whether it was applied.
  HealthVerdict note(
      long step,
      double loss,
      double gradient_norm,
      std::uint32_t length,
      bool applied
  );

  // What the schedule's rate is multiplied by: 1 until a roll-back.
  double lr_factor() const { return lr_factor_; }
  // The step that a row of bad ones began with; 0 while the last was good.
  long trouble() const { return row_.since; }
  // The same, were it only the steps of one length that are bad.
  long first_trouble() const;

  // After a roll-back this is of the checkpoint: what was usual there is what
  // its weights are judged by. How often that has happened, and the rate, are
  // of the loop that went back, and stay.
  void rolled_back_from(const Health& later);

  Json state() const;
  // Throws FormatError when it is no such state.
  void restore(const Json& state);

 private:
  // Bad steps one after the other: how many, since which, and how many of the
  // last have a bad norm beside a good loss.
  struct Row {
    long bad = 0, since = 0, norms = 0;
  };
  // Of rows of one length: good steps' (norms as logarithms).
  struct Window {
    std::deque<double> losses, norms;
    Row row;
  };

  HealthConfig config_;
  std::map<std::uint32_t, Window> windows_;
  Row row_;  // whatever the lengths
  long roll_backs_ = 0;
  long good_since_roll_back_ = 0;
  double lr_factor_ = 1;

  struct Complaint {
    std::string what;  // empty: none
    bool norm_alone = false;
  };
  Complaint complaint(const Window& own, double loss, double norm) const;
  bool known(const std::deque<double>& values) const;
  bool is_usual_now(Window& own, bool norm_alone);
  void note_good(Window& own, double loss, double norm);
  HealthVerdict bad_step(long step, Window& own, const std::string& what);
  HealthVerdict third(const std::string& reason, const Row& row);
  void forget_rows();
};

}  // namespace hearth::train
