#include "hearth/infer/generated.h"

namespace hearth::infer {

std::string_view name_of(Finish finish) {
  return finish == Finish::stop     ? "stop"
         : finish == Finish::length ? "length"
                                    : "cancelled";
}

}  // namespace hearth::infer
