// Answers what tests/interop/run can't ask the trainer itself:
//
//   trainer_probe logits MODEL TOKENS SAMPLES LOGITS        logits (float32) for int32 tokens
//   trainer_probe samples SEED TOKEN_COUNT SEQUENCE COUNT   where the first samples begin
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "trainer/checkpoint/training_state.h"
#include "trainer/train/sampler.h"
#include "trainer/workloads/gpt2/gpt2.h"
#include "trainer/workloads/gpt2/hugging_face.h"
#include "trainer/workloads/gpt2/token_samples.h"

namespace tj::trainer {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "trainer_probe: %s\n", describe(error).c_str());
  return 1;
}

at::Tensor read_tokens(const char* path, std::int64_t samples) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto count = static_cast<std::int64_t>(bytes.size() / sizeof(std::int32_t));
  return torch::from_blob(const_cast<char*>(bytes.data()), {samples, count / samples},
                          torch::kInt32)
      .to(torch::kInt64);
}

int write_logits(const char* const* arguments) {
  const auto found = read_initial_model(arguments[0]);
  if (!found) return fail(found.error());
  const Gpt2 model(found->model, {}, {});
  std::vector<NamedTensor> tensors;
  std::vector<std::string> names;
  for (const auto& spec : gpt2_tensors(found->model)) names.push_back(spec.name);
  append_tensors(tensors, names, model.tensors());
  const auto reader = open_initial_weights(arguments[0], names);
  if (!reader) return fail(reader.error());
  const auto read = fill(*make_single_communicator(), tensors, *reader, /*readers=*/1);
  if (!read) return fail(read.error());
  const at::NoGradGuard no_grad;
  const auto tokens = read_tokens(arguments[1], std::atoll(arguments[2]));
  const auto logits = model.logits(tokens).contiguous();
  std::ofstream(arguments[3], std::ios::binary)
      .write(static_cast<const char*>(logits.data_ptr()),
             static_cast<std::streamsize>(logits.nbytes()));
  return 0;
}

int print_samples(const char* const* arguments) {
  const TokenTiles tiles{.token_count = std::atoll(arguments[1]),
                         .sequence_tokens = std::atoll(arguments[2])};
  const SampleOrder order{.seed = std::strtoull(arguments[0], nullptr, 10),
                          .sample_count = tiles.count()};
  const std::int64_t count = std::atoll(arguments[3]);
  for (std::int64_t sample = 0; sample < count; ++sample)
    std::printf("%lld\n", static_cast<long long>(tiles.offset(sample_at(order, sample))));
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  const std::string what = argc == 6 ? argv[1] : "";
  if (what == "logits") return tj::trainer::write_logits(argv + 2);
  if (what == "samples") return tj::trainer::print_samples(argv + 2);
  std::fputs("usage: trainer_probe logits|samples, as the head of trainer_probe.cc says\n", stderr);
  return 2;
}
