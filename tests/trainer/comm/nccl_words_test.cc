// What NCCL and c10d print when they fail, and what is made of it. The texts are those of
// NCCL 2.28's warnings in the form of c10d's exceptions (NCCLUtils.cpp, getNcclErrorDetailStr).
#include "trainer/comm/nccl_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tj::trainer {
namespace {
using testing::HasSubstr;

std::string thrown(const std::string& code, const std::string& warning) {
  return "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:93, " + code +
         ", NCCL version 2.28.9\nncclSystemError: System call (e.g. socket, malloc) or external "
         "library call failed or device error. \nLast error:\n" +
         warning + "\nException raised from create at ../torch/csrc/NCCLUtils.cpp:93 (most recent";
}

std::string system_error(const std::string& warning) {
  return thrown("unhandled system error (run with NCCL_DEBUG=INFO for details)", warning);
}

TEST(NcclWords, are_the_code_and_the_last_warning_in_one_line) {
  const auto words = nccl_words(
      system_error("Error while creating shared memory segment /dev/shm/nccl-KWfVyt (size "
                   "9637888), error: No space left on device (28)"));
  EXPECT_EQ(words.cause,
            "unhandled system error, NCCL version 2.28.9: Error while creating shared memory "
            "segment /dev/shm/nccl-KWfVyt (size 9637888), error: No space left on device (28)");
  EXPECT_TRUE(words.is_of_this_node);
  EXPECT_EQ(describe(words), words.cause + "; " + words.remedy);
  // The plug-in has made one line of it, which the engine reads again.
  EXPECT_EQ(nccl_words(words.cause).cause, words.cause);
  EXPECT_EQ(nccl_words(words.cause).remedy, words.remedy);
}

struct Case {
  std::string warning;
  std::string remedy;  // a piece of it
  bool is_of_this_node = false;
};

TEST(NcclWords, have_a_remedy_by_the_last_warning) {
  for (
      const auto& [warning, remedy, is_of_this_node] : {
          Case{"Call to posix_fallocate failed : No space left on device", "/dev/shm is too", true},
          Case{"Error while creating shared memory segment nccl-shm-recv-1 (size 4460544), error: "
               "Permission denied (13)",
               "/dev/shm must be writable", true},
          Case{"Error while attaching to shared memory segment /dev/shm/nccl-g (size 0), error: No "
               "such file or directory (2)",
               "the ranks of one node must see one /dev/shm", true},
          Case{"Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
               "`ulimit -l` must be unlimited", true},
          Case{"Call to ibv_modify_qp failed with 110 Connection timed out", "NCCL_IB_HCA must"},
          Case{"NET/IB: Got completion from peer 10.0.0.2<50673> with "
               "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)",
               "NCCL_IB_HCA must"},
          Case{"Bootstrap : no socket interface found", "NCCL_SOCKET_IFNAME must name", true},
          Case{
              "socketPollConnect: connect to 10.0.0.2<36085> returned Connection refused, exceeded "
              "error retry count after 35 attempts",
              "every port between the nodes must be open"},
          Case{"socketStartConnect: Connect to 172.17.0.1<43215> failed : No route to host",
               "every port between the nodes must be open"},
          Case{"socketProgress: Connection closed by remote peer node-b<5234>",
               "its own last line says why"},
          Case{"Cuda failure 101 'invalid device ordinal'", "CUDA_VISIBLE_DEVICES must name", true},
          Case{"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 5000",
               "two ranks have one GPU", true},
          Case{"Call to socket failed : Too many open files", "`ulimit -n` must be higher", true},
          Case{"something that nobody has seen yet", "trainer check looks at all four"},
      }) {
    const auto words = nccl_words(system_error(warning));
    EXPECT_THAT(words.remedy, HasSubstr(remedy)) << warning;
    EXPECT_EQ(words.is_of_this_node, is_of_this_node) << warning;
    EXPECT_THAT(words.cause, testing::EndsWith(": " + warning));
  }
}

TEST(NcclWords, of_other_failures_stay_as_they_are) {
  const auto usage = nccl_words(thrown("invalid usage (run with NCCL_DEBUG=WARN for details)", ""));
  EXPECT_EQ(usage.cause, "invalid usage, NCCL version 2.28.9");
  EXPECT_EQ(describe(usage), usage.cause);
  EXPECT_EQ(describe(nccl_words("out of memory")), "out of memory");
  EXPECT_EQ(nccl_words("NCCL error: remote process exited, NCCL version 2.28.9\nframe").cause,
            "remote process exited, NCCL version 2.28.9");
}

TEST(NcclWords, are_told_by_the_first_line) {
  EXPECT_TRUE(is_of_nccl(system_error("")));
  EXPECT_FALSE(is_of_nccl("a file can't be read\nNCCL error in: a.cc:1, unhandled system error"));
}

}  // namespace
}  // namespace tj::trainer
