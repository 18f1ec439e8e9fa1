// Philox4x32-10 (counter_random.h) for a GPU, which compiles it from its text at the first
// use. It is C++ too, so that a test on the CPU can hold it to the loop that it repeats.
#pragma once

#define TJ_TEXT_OF(...) #__VA_ARGS__
#define TJ_TEXT(...) TJ_TEXT_OF(__VA_ARGS__)

// Word number `element` of the row that belongs to `sample`.
#define TJ_PHILOX_WORD                                                    \
  template <typename T>                                                   \
  T philox_word(T element, T sample, long long seed, long long purpose) { \
    unsigned int c0 = (unsigned int)(element / 4);                        \
    unsigned int c1 = (unsigned int)purpose;                              \
    unsigned int c2 = (unsigned int)sample;                               \
    unsigned int c3 = (unsigned int)(sample >> 32);                       \
    unsigned int k0 = (unsigned int)seed;                                 \
    unsigned int k1 = (unsigned int)((unsigned long long)seed >> 32);     \
    for (int round = 0; round < 10; ++round) {                            \
      const unsigned long long p0 = 0xD2511F53ULL * c0;                   \
      const unsigned long long p1 = 0xCD9E8D57ULL * c2;                   \
      const unsigned int n0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;         \
      const unsigned int n2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;         \
      c1 = (unsigned int)p1;                                              \
      c3 = (unsigned int)p0;                                              \
      c0 = n0;                                                            \
      c2 = n2;                                                            \
      k0 += 0x9E3779B9U;                                                  \
      k1 += 0xBB67AE85U;                                                  \
    }                                                                     \
    const int place = (int)(element % 4);                                 \
    return (T)(place == 0 ? c0 : place == 1 ? c1 : place == 2 ? c2 : c3); \
  }
