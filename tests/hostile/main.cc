// hostile_manifests COUNT SEED: so many manifests, one JSON text per line.
#include <cstdio>
#include <string>

#include "tests/hostile/hostile.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: hostile_manifests COUNT SEED\n", stderr);
    return 64;
  }
  const auto manifests = tj::some_hostile_manifests(
      std::stoul(argv[1]), static_cast<std::uint32_t>(std::stoul(argv[2])));
  for (const auto& [what, manifest] : manifests) std::printf("%s\n", manifest.dump().c_str());
}
