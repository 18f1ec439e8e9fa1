// Stands in for libtrainer_nccl.so: FAKE_ABI and FAKE_LIBTORCH say how it introduces itself. Its
// GPU 1 can't be used, for a reason that the variable FAKE_GPU_SAYS gives; its NCCL fails with
// FAKE_NCCL_SAYS. FAKE_CARD is the name of a card that is another process's no more.
#include <cstdio>
#include <cstdlib>

#include "trainer/comm/nccl_plugin/abi.h"

namespace {

const char* told_by(const char* variable, const char* otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

bool use_device(int index, tj::trainer::PluginText* text, tj::trainer::PluginText* card) {
  text->write(index == 1 ? told_by("FAKE_GPU_SAYS", "out of memory") : "Fake 3000, NCCL 2.28.9");
  std::snprintf(card->bytes, sizeof card->bytes, "GPU-%s%d", told_by("FAKE_CARD", ""), index);
  return index != 1;
}

void* open_backend(const tj::trainer::NcclGroup*, tj::trainer::PluginText* text) {
  text->write(told_by("FAKE_NCCL_SAYS", "internal error"));
  return nullptr;
}

tj::trainer::NcclProgress progress(const void*) { return {.begun = 8, .ended = 7}; }

[[maybe_unused]] constexpr tj::trainer::NcclPlugin kPlugin{.abi = FAKE_ABI,
                                                           .libtorch = FAKE_LIBTORCH,
                                                           .use_device = use_device,
                                                           .open_backend = open_backend,
                                                           .progress = progress};

}  // namespace

#ifndef FAKE_WITHOUT_FACTORY
const tj::trainer::NcclPlugin* trainer_nccl_plugin() { return &kPlugin; }
#endif
