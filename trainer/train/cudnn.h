// How cuDNN computes the convolutions of a GPU.
#pragma once

namespace tj::trainer {

/// How it chooses an algorithm for a shape that is new.
enum class CudnnChoice {
  by_trying,  // the fastest; that takes a second, and another run may find another one
  by_rule,    // at once
  in_order,   // by a rule among those that add in one order: the same bits each time
};

/// For the whole process, before it computes. float32 is float32, not TF32.
void set_up_cudnn(CudnnChoice choice);

}  // namespace tj::trainer
