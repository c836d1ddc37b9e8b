#include <cstdio>
#include "hearth/kernels/table.h"
int main() { for (auto* t : hearth::kernels::usable_tables()) std::puts(t->isa); }
