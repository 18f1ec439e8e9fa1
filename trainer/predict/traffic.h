// How many bytes of gradients cross the wire in a step, and how long the wire is busy with them.
// Pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/comm/reduce_options.h"

namespace tj::trainer {

/// What each rank can send, while it receives as much.
struct Link {
  double bytes_per_second = 0;
  double latency_s = 0;  // one way
  /// Of a core that computes, for each byte that is sent while another comes: copying and summing.
  /// 0: other cores or the device do that.
  double core_s_per_byte = 0;
  bool operator==(const Link&) const = default;
};

/// The gradient of one trained tensor.
struct Gradient {
  std::vector<std::int64_t> shape = {};
  double ready = 1;  // share of a backward pass after which it is complete
};

/// In ascending risk for the training.
inline constexpr std::array kCodecs{Codec::fp32, Codec::bf16, Codec::fp16, Codec::int8,
                                    Codec::powersgd};

/// PowerSGD sends a matrix as two factors only where they are less than half of it
/// (Vogels et al. 2019; PyTorch's powerSGD_hook.py, min_compression_rate).
bool is_factored(const Gradient& gradient, int rank);

/// One gradient in the form in which it is sent. int8: a byte for each element, and the scales.
/// powersgd: rank x (n + m) float32 of an n x m matrix, where n is the first extent and m all
/// others; all else in float32.
double payload_bytes(const Gradient& gradient, Codec codec, int powersgd_rank);
double payload_bytes(std::span<const Gradient> gradients, Codec codec, int powersgd_rank);
std::int64_t element_count(std::span<const Gradient> gradients);

/// What each rank sends, and receives, in an all-reduce by a ring: 2 (N - 1) / N x S (nccl-tests,
/// PERFORMANCE.md). On two ranks that is S each way.
double ring_bytes(double bytes, int ranks);
/// The same over B bytes per second, and 2 (N - 1) hops.
double ring_seconds(double bytes, int ranks, const Link& link);

/// "1gbps", "2.5Gbit/s", "100mbit": bits on an Ethernet, of which TCP carries kTcpGoodput;
/// "117MB/s", "1GiB/s": bytes as they arrive. Absent for what is none, or not above 0.
std::optional<double> link_rate_from(std::string_view text);
inline constexpr const char* kLinkRule =
    "a rate such as 1gbps (what the cable has) or 117MB/s (what arrives)";
/// Of the bits on an Ethernet with packets of 1500 bytes: 1448 of 1538.
inline constexpr double kTcpGoodput = 0.94;

}  // namespace tj::trainer
