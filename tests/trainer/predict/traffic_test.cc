// Bytes and seconds on the wire: the sums of system S2 (50.2 million parameters, two nodes, one
// gigabit).
#include "trainer/predict/traffic.h"

#include <gtest/gtest.h>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

TEST(Traffic, the_sums_of_two_nodes_at_one_gigabit) {
  const auto gradients = of_elements(50'200'000);
  struct Line {
    Codec codec;
    const char* sum;
  };
  for (const auto& [codec, sum] :
       {Line{Codec::fp32, "201 MB, 1.72 s, 63 %"}, Line{Codec::bf16, "100 MB, 0.86 s, 46 %"},
        Line{Codec::fp16, "100 MB, 0.86 s, 46 %"}, Line{Codec::int8, "50 MB, 0.43 s, 30 %"}})
    EXPECT_EQ(sum_text(gradients, codec), sum) << to_string(codec);
}

TEST(Traffic, powersgd_sends_factors_of_matrices_and_all_of_the_rest) {
  // A GPT-2 of 8 layers, 512 wide, with 50257 tokens: a hundredth.
  EXPECT_EQ(sum_text(gpt2_tiny(), Codec::powersgd), "7.7 MB, 0.07 s, 6 %");
  const Gradient matrix{.shape = {512, 2048}}, vector{.shape = {512}}, narrow{.shape = {512, 4}};
  EXPECT_EQ(payload_bytes(matrix, Codec::powersgd, 4), 4 * 4 * (512 + 2048));
  EXPECT_EQ(payload_bytes(vector, Codec::powersgd, 4), 4 * 512);
  EXPECT_EQ(payload_bytes(narrow, Codec::powersgd, 4), 4 * 4 * 512);
  const Gradient kernel{.shape = {64, 32, 3, 3}};
  EXPECT_EQ(payload_bytes(kernel, Codec::powersgd, 2), 4 * 2 * (64 + 32 * 9));
}

TEST(Traffic, int8_has_a_scale_for_each_chunk) {
  EXPECT_EQ(payload_bytes(Gradient{.shape = {1}}, Codec::int8, 4), 1 + 4);
  EXPECT_EQ(payload_bytes(Gradient{.shape = {kReduceBlockElements}}, Codec::int8, 4),
            kReduceBlockElements + 4);
  EXPECT_EQ(payload_bytes(Gradient{.shape = {kReduceBlockElements + 1}}, Codec::int8, 4),
            kReduceBlockElements + 1 + 8);
}

TEST(Traffic, follows_the_law_of_the_ring) {
  EXPECT_DOUBLE_EQ(ring_bytes(100, 2), 100);
  EXPECT_DOUBLE_EQ(ring_bytes(100, 4), 150);
  EXPECT_DOUBLE_EQ(ring_bytes(100, 1), 0);
  EXPECT_DOUBLE_EQ(ring_seconds(100, 4, {.bytes_per_second = 10, .latency_s = 0.5}), 15 + 3);
  EXPECT_DOUBLE_EQ(ring_seconds(100, 1, {.bytes_per_second = 10, .latency_s = 0.5}), 0);
}

TEST(Traffic, names_of_codecs_are_read_as_they_are_written) {
  for (const auto codec : kCodecs) EXPECT_EQ(codec_from(to_string(codec)), codec);
  EXPECT_FALSE(codec_from("int4"));
}

TEST(Traffic, rates_of_links_are_bits_of_a_cable_or_bytes_that_arrive) {
  EXPECT_NEAR(*link_rate_from("1gbps"), 117.5e6, 1);
  EXPECT_NEAR(*link_rate_from("2.5Gbit/s"), 2.5 * 117.5e6, 1);
  EXPECT_NEAR(*link_rate_from("100mbit"), 11.75e6, 1);
  EXPECT_NEAR(*link_rate_from("10Gb/s"), 1175e6, 1);
  EXPECT_EQ(link_rate_from("117MB/s"), 117e6);
  EXPECT_EQ(link_rate_from("1GiB/s"), 1024.0 * 1024 * 1024);
  for (const char* const wrong :
       {"", "fast", "0gbps", "-1gbps", "1", "1MB", "1gb", "nangbps", "1e3gbps", "999999999999tbps"})
    EXPECT_FALSE(link_rate_from(wrong)) << wrong;
}

}  // namespace
}  // namespace tj::trainer
