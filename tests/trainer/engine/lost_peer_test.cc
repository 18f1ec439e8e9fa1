#include "trainer/comm/lost_peer.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tj::trainer {
namespace {

constexpr c10::SourceLocation kHere{"wait", "ProcessGroupNCCL.cpp", 1};

template <typename Type>
Type thrown_by_torch(const std::string& cause) {
  return Type(kHere, cause + "\nframe #1: c10d::ProcessGroupNCCL::allreduce + gloo/");
}

c10::DistBackendError by_nccl(const std::string& cause) {
  return thrown_by_torch<c10::DistBackendError>("NCCL error in: ProcessGroupNCCL.cpp:3690, " +
                                                cause + ", NCCL version 2.28.9");
}

TEST(LostPeer, is_what_a_broken_connection_means) {
  EXPECT_TRUE(
      means_lost_peer(std::runtime_error("[../third_party/gloo/gloo/transport/tcp/pair.cc:547] "
                                         "Connection closed by peer [10.0.0.2]")));
  EXPECT_TRUE(means_lost_peer(thrown_by_torch<c10::DistNetworkError>("Connection reset by peer")));
  EXPECT_TRUE(means_lost_peer(by_nccl("remote process exited or there was a network error")));
  EXPECT_TRUE(means_lost_peer(by_nccl("unhandled system error (run with NCCL_DEBUG=INFO)")));
  EXPECT_TRUE(means_lost_peer(
      thrown_by_torch<c10::DistBackendError>("NCCL communicator was aborted on rank 1.")));
}

TEST(LostPeer, is_not_what_a_failure_of_this_rank_means) {
  EXPECT_FALSE(means_lost_peer(thrown_by_torch<c10::OutOfMemoryError>(
      "CUDA out of memory. Tried to allocate 2.00 GiB, NCCL has 1.00 GiB")));
  EXPECT_FALSE(means_lost_peer(
      c10::AcceleratorError(kHere, 700, "CUDA error: an illegal memory access was encountered")));
  EXPECT_FALSE(means_lost_peer(by_nccl("unhandled cuda error (run with NCCL_DEBUG=INFO)")));
  EXPECT_FALSE(means_lost_peer(by_nccl("invalid usage (run with NCCL_DEBUG=WARN for details)")));
}

TEST(LostPeer, is_not_what_this_node_lacks_by_nccls_last_warning) {
  const auto with_warning = [](const std::string& warning) {
    return thrown_by_torch<c10::DistBackendError>(
        "NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error, NCCL version 2.28.9\n"
        "ncclSystemError: System call failed. \nLast error:\n" +
        warning);
  };
  EXPECT_FALSE(means_lost_peer(
      with_warning("Error while creating shared memory segment /dev/shm/nccl-1 (size 9637888)")));
  EXPECT_FALSE(means_lost_peer(
      with_warning("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory")));
  EXPECT_TRUE(means_lost_peer(with_warning("Connection closed by remote peer node-b<5234>")));
}

TEST(LostPeer, is_not_told_from_the_frames_of_a_stack) {
  EXPECT_FALSE(means_lost_peer(thrown_by_torch<c10::Error>("The size of tensor a must match")));
  EXPECT_FALSE(means_lost_peer(std::runtime_error("a file can't be read\nNCCL error, gloo/")));
}

}  // namespace
}  // namespace tj::trainer
