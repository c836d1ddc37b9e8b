#include "hearth/text/template/meter.h"

#include <string>

#include "hearth/text/template/failure.h"

namespace hearth::text::jinja {
namespace {

[[noreturn]] void over(const char* what, std::size_t limit) {
  throw Failure{
      TemplateFault::kLimit,
      std::string(what) + " must stay within " + std::to_string(limit)
  };
}

}  // namespace

thread_local Meter* Meter::active_ = nullptr;

Meter::Meter(const TemplateLimits& limits, Effort* effort)
    : limits_(limits), effort_(effort), outer_(active_) {
  active_ = this;
}

Meter::~Meter() {
  active_ = outer_;
}

void Meter::work(std::size_t units) {
  if (active_ == nullptr) return;
  active_->work_ += units;
  if (active_->work_ > active_->limits_.max_work) {
    over("work of the template", active_->limits_.max_work);
  }
  if (active_->effort_ != nullptr) active_->effort_->spend(units);
}

void Meter::allocate(std::size_t bytes) {
  if (active_ == nullptr) return;
  // Written so that no sum can wrap around.
  const std::size_t limit = active_->limits_.max_value_bytes;
  if (bytes > limit || active_->bytes_ > limit - bytes) {
    over("bytes allocated by the template", limit);
  }
  active_->bytes_ += bytes;
}

Meter::Nested::Nested() {
  if (active_ == nullptr) return;
  if (++active_->depth_ > active_->limits_.max_depth) {
    --active_->depth_;
    over("nesting of the template", active_->limits_.max_depth);
  }
}

Meter::Nested::~Nested() {
  if (active_ != nullptr) --active_->depth_;
}

}  // namespace hearth::text::jinja
