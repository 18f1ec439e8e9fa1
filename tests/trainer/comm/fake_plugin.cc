// Stands in for libtrainer_nccl.so: FAKE_ABI and FAKE_LIBTORCH say how it introduces itself. Its
// GPU 1 can't be used.
#include <cstdio>

#include "trainer/comm/nccl_plugin/abi.h"

namespace {

bool use_device(int index, tj::trainer::PluginText* text, tj::trainer::PluginText* card) {
  std::snprintf(text->bytes, sizeof text->bytes, "%s",
                index == 1 ? "out of memory" : "Fake 3000, NCCL 2.28.9");
  std::snprintf(card->bytes, sizeof card->bytes, "GPU-%d", index);
  return index != 1;
}

void* open_backend(const tj::trainer::NcclGroup*, tj::trainer::PluginText*) { return nullptr; }

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
