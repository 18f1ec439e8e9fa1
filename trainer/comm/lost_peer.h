// What a failed collective says of the other ranks. The libraries throw texts and types of their
// own for a connection that broke; a failure of this rank itself, such as a GPU without memory, can
// come out of a collective, too, and must keep its name. Pure.
#pragma once
#include <exception>

namespace tj::trainer {

/// Whether `failure`, thrown out of a collective of Gloo or NCCL, means that another rank, or the
/// way to it, is gone.
bool means_lost_peer(const std::exception& failure);

}  // namespace tj::trainer
