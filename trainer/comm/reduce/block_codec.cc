#include "trainer/comm/reduce/block_codec.h"

#include "trainer/comm/reduce/codecs.h"
#include "trainer/comm/reduce/vectorised.h"

namespace tj::trainer {
namespace {

TJ_VECTORISED void scale_values(const float* from, float factor, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

TJ_VECTORISED void add_values(const float* more, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] += more[i];
}

constexpr std::size_t kLanes = 8;

TJ_VECTORISED void add_cosine_lanes(const float* applied, const float* exact, std::size_t count,
                                    double* product, double* applied_square, double* exact_square) {
  double products[kLanes] = {}, ours[kLanes] = {}, theirs[kLanes] = {};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double a = applied[i + lane], b = exact[i + lane];
      products[lane] += a * b;
      ours[lane] += a * a;
      theirs[lane] += b * b;
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    *product += products[lane];
    *applied_square += ours[lane];
    *exact_square += theirs[lane];
  }
}

}  // namespace

const BlockCodec& block_codec(Codec codec) {
  switch (codec) {
    case Codec::bf16: return bf16_codec();
    case Codec::fp16: return fp16_codec();
    case Codec::int8: return int8_codec();
    case Codec::fp32:
    case Codec::powersgd: break;
  }
  return fp32_codec();
}

void scale(std::span<float> values, float factor) {
  scale_values(values.data(), factor, values.data(), values.size());
}

void scale_to(std::span<const float> from, float factor, std::span<float> to) {
  scale_values(from.data(), factor, to.data(), from.size());
}

void add_to(std::span<const float> more, std::span<float> values) {
  add_values(more.data(), values.data(), values.size());
}

void add_cosine(std::span<const float> applied, std::span<const float> exact, CosineSums& sums) {
  const std::size_t whole = applied.size() / kLanes * kLanes;
  add_cosine_lanes(applied.data(), exact.data(), whole, &sums.product, &sums.applied, &sums.exact);
  for (std::size_t i = whole; i < applied.size(); ++i) {
    const double a = applied[i], b = exact[i];
    sums.product += a * b;
    sums.applied += a * a;
    sums.exact += b * b;
  }
}

}  // namespace tj::trainer
