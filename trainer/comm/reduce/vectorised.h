// Marks a function of plain loops that the compiler makes vector code of, for the CPU it runs on.
// Its source is compiled with -O3 and without contraction of a * b + c: the bits are then those of
// any other CPU.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TJ_VECTORISED __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define TJ_VECTORISED
#endif
