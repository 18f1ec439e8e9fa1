// A TrainingJob that is being made from a manifest of another kind: each call takes one part of it
// over, or says what is left out. All paths in messages are those of the manifest that is read.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/job_conversion.h"
#include "cli/left_out.h"
#include "operator/api/field_checker.h"

namespace tj {

struct TemplateOptions {
  bool has_index = false;  // its pods are told JOB_COMPLETION_INDEX
};

inline constexpr std::size_t kRestFieldsTold = 8;

class JobDraft {
 public:
  /// Takes name, namespace, labels and annotations. `object` must live longer than the draft.
  explicit JobDraft(const nlohmann::json& object);

  const field::Field& root() const { return root_; }
  field::FieldChecker& check() { return checker_; }

  /// One where `count` is not given.
  void add_workers(const field::Field& count);
  /// So many groups of so many each.
  void add_workers(const field::Field& groups, const field::Field& each);
  /// The fields of a run policy that all kinds have by the same names.
  void take_run_policy(const field::Field& policy);
  /// A number that the run policy calls `ours`.
  void take_number(const field::Field& number, const char* ours);
  /// One of the words that the run policy has under that name, too.
  void take_choice(const field::Field& choice);
  /// A number, also as a text; words such as "auto" are what is done anyway.
  void take_nproc(const field::Field& count);
  /// Without what the operator writes itself.
  void take_template(const field::Field& pod_template, const TemplateOptions& options);

  void note(std::string text) { left_out_.note(std::move(text)); }
  void leave_out(const field::Field& field, const std::string& why) {
    left_out_.leave_out(field, why);
  }
  void leave_out_restart_policy(const field::Field& parent);
  /// All fields but those that were `taken`.
  void leave_out_rest(const field::Field& object, field::Names taken,
                      std::span<const LeftOutField> known) {
    left_out_.leave_out_rest(object, taken, known);
  }

  ConvertedJob take();

 private:
  nlohmann::json texts_of(const field::Field& metadata, const std::string& name);
  void take_metadata(nlohmann::json& target, const field::Field& metadata);
  void clean_containers(nlohmann::json& pod, const char* list, const TemplateOptions& options);
  nlohmann::json clean_env(const nlohmann::json& variables, const TemplateOptions& options);
  void drop_variable(const std::string& name, const nlohmann::json& variable);
  void note_variables();
  void check_result(ConvertedJob& job) const;

  field::Field root_;
  field::FieldChecker checker_;
  LeftOut left_out_{"a TrainingJob has nothing like it", kRestFieldsTold};
  nlohmann::json metadata_ = nlohmann::json::object();
  nlohmann::json run_policy_ = nlohmann::json::object();
  nlohmann::json template_;
  std::string template_path_;
  long long workers_ = 0;
  std::optional<int> master_port_;
  std::optional<int> nproc_;
  std::map<std::string, std::string, std::less<>> dropped_;  // variables, and their values as shown
};

}  // namespace tj
