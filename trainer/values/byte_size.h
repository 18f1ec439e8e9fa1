// Sizes as people write them: 512MiB, 1.5GB, 4096.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tj::trainer {

/// Absent for what is none, is negative or beyond an exabyte. Units: B; kB, MB, GB, TB by 1000;
/// KiB, MiB, GiB, TiB by 1024, also as Kubernetes writes them (Ki, Mi, Gi, Ti). None: bytes.
std::optional<std::int64_t> byte_size_from(std::string_view text);

/// What byte_size_from() takes, as "it must be ...".
inline constexpr const char* kByteSizeRule = "a size such as 512MiB, 2GB or 0";

}  // namespace tj::trainer
