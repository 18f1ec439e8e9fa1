// How cuDNN computes the convolutions of a GPU.
#pragma once

namespace tj::trainer {

/// For the whole process, before it computes. float32 is float32, not TF32. Repeatable: the same
/// bits each time, by algorithms that add in one order and are chosen by a rule. Else the fastest,
/// which is found by trying for each new shape: another run may find another one.
void set_up_cudnn(bool is_repeatable);

}  // namespace tj::trainer
