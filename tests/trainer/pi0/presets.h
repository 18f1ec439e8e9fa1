// Shapes of pi0 for tests: the presets by name, and one that is small enough for anything.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

inline Pi0Config pi0_named(const std::string& name) {
  const auto presets = pi0_presets();
  const auto found = std::ranges::find(presets, name, &Preset::name);
  if (found == presets.end()) {
    ADD_FAILURE() << "no preset " << name;
    return {};
  }
  return pi0_model(*found);
}

/// Two cameras of 4 tokens each, 8 tokens of prompt, 4 actions of 4 values.
inline Pi0Config smallest_pi0(Pi0Config::Kind kind = Pi0Config::Kind::pi0) {
  return {
      .kind = kind,
      .vision =
          {.image_side = 28, .patch_side = 14, .layers = 1, .heads = 2, .width = 32, .hidden = 48},
      .layers = 2,
      .heads = 2,
      .head_width = 16,
      .prefix = {.width = 64, .hidden = 96},
      .expert = {.width = 32, .hidden = 64},
      .vocabulary = 64,
      .cameras = {"base", "wrist"},
      .prompt_tokens = 8,
      .horizon = 4,
      .state_width = 4,
      .action_width = 4,
      .actions_counted = 4};
}

inline constexpr Pi0Config::Kind kPi0Kinds[] = {Pi0Config::Kind::pi0, Pi0Config::Kind::pi05};

}  // namespace tj::trainer
