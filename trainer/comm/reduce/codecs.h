// The codecs of blocks, one source each. What they are is in docs/trainer.md, "Compressed
// reduction".
#pragma once
#include "trainer/comm/reduce/block_codec.h"

namespace tj::trainer {

/// As they are.
const BlockCodec& fp32_codec();
/// The upper half of a float32, rounded to nearest even.
const BlockCodec& bf16_codec();
/// IEEE's binary16 behind a power of two for each block, which brings its largest value near the
/// largest that the type has: so neither small gradients vanish nor large ones overflow.
const BlockCodec& fp16_codec();
/// 127ths of the block's largest magnitude, which stands before them as a float32.
const BlockCodec& int8_codec();

}  // namespace tj::trainer
