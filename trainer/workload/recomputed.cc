#include "trainer/workload/recomputed.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <utility>

#include "trainer/workload/autocast.h"

namespace tj::trainer {
namespace {

struct Work : torch::CustomClassHolder {
  std::function<Tensors(const Tensors&)> compute;
  Precision precision = Precision::fp32;
  std::size_t inputs = 0;
};

/// The parameters are inputs too, so that their gradients go the ordinary way.
struct Recomputed : torch::autograd::Function<Recomputed> {
  using Context = torch::autograd::AutogradContext;
  static constexpr std::size_t kInputsBefore = 1;

  static torch::autograd::variable_list forward(Context* context,
                                                const c10::intrusive_ptr<Work>& work,
                                                at::TensorList inputs_and_parameters) {
    const auto all = inputs_and_parameters.vec();
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(work->inputs);
    context->saved_data["work"] =
        c10::IValue::make_capsule(c10::intrusive_ptr<torch::CustomClassHolder>(work));
    context->save_for_backward(all);
    return work->compute(Tensors(all.begin(), end));
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["work"].toCapsule();
    const auto& work = static_cast<const Work&>(*capsule);
    auto kept = context->get_saved_variables();
    for (std::size_t i = 0; i < work.inputs; ++i)
      kept[i] = kept[i].detach().requires_grad_(kept[i].requires_grad());
    Tensors wanted;
    for (const auto& tensor : kept)
      if (tensor.requires_grad()) wanted.push_back(tensor);
    const at::AutoGradMode with_gradients(true);
    const Autocast autocast(work.precision, kept.front().device().type());
    const auto again = work.compute(
        Tensors(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(work.inputs)));
    auto made = torch::autograd::grad(again, wanted, gradients, /*retain_graph=*/{},
                                      /*create_graph=*/false, /*allow_unused=*/true);
    torch::autograd::variable_list result(kInputsBefore + kept.size());
    for (std::size_t i = kept.size(); i-- > 0;) {
      if (!kept[i].requires_grad()) continue;
      result[kInputsBefore + i] = std::move(made.back());
      made.pop_back();
    }
    return result;
  }
};

}  // namespace

Tensors recomputed(const Recomputation& work, const Tensors& inputs) {
  auto kept = c10::make_intrusive<Work>();
  kept->compute = work.compute;
  kept->precision = work.precision;
  kept->inputs = inputs.size();
  auto all = inputs;
  all.insert(all.end(), work.parameters.begin(), work.parameters.end());
  return Recomputed::apply(kept, at::TensorList(all));
}

}  // namespace tj::trainer
