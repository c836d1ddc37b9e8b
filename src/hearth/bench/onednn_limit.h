#pragma once
// A limit on oneDNN, for peers that run it.
namespace hearth::bench {

// Keeps oneDNN, in this process and in those it starts (PyTorch), from AMX
// where CPUID hides the size of tiles: it takes them as empty and dies of an
// illegal instruction. A limit the user set stays.
void limit_onednn_isa();

}  // namespace hearth::bench
