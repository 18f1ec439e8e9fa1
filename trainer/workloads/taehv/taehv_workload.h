// TAEHV on videos as a workload.
#pragma once
#include "trainer/data/video/indexed_videos.h"
#include "trainer/data/video/video_files.h"
#include "trainer/workload/workload.h"
#include "trainer/workloads/taehv/clip_samples.h"
#include "trainer/workloads/taehv/taehv.h"

namespace tj::trainer {

class TaehvWorkload final : public Workload {
 public:
  explicit TaehvWorkload(const Preset& preset,
                         std::filesystem::path plugin = VideoOpener::default_plugin());

  /// The preset says the shape; the weights must be of it.
  Result<void> read_init(const std::string& path) override;
  void configure(FlagReader& reader) override;
  OpenedData open_data(const DataPaths& data) override;
  OpenedData make_up_data() override;

  std::vector<Setting> settings() const override { return settings_; }
  std::vector<TensorSpec> tensors() const override { return tensors_of(config_, loss_); }
  std::vector<ModelBlock> blocks() const override { return blocks_of(config_, loss_); }
  std::vector<ParameterGroup> groups() const override;
  std::optional<MemorySpec> memory() const override;
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override;
  SampleWords words() const override;
  SampleCost cost() const override;
  std::size_t metric_sums() const override { return loss_.metric_sums(); }
  std::vector<Metric> metrics() const override;
  bool draws_pictures() const override { return true; }
  ModelShape shape() const override;
  std::string config_json() const override { return taehv_config_json(config_); }
  Result<TensorReader> open_initial_weights(const std::string& path) const override;
  std::int64_t hidden_width() const override { return config_.encoder_width; }

 private:
  struct Usable {
    std::vector<std::unique_ptr<Video>> videos;
    std::vector<TeacherLatents> latents;  // of each of them; none without a teacher
    std::vector<Error> left_out;
  };
  void configure_teacher(FlagReader& reader);
  void configure_loss(FlagReader& reader);
  void configure_adversary(FlagReader& reader);
  ReplayShape replay_shape() const;
  bool has_teacher(const DataPaths& data) const {
    return !teacher_folder_.empty() && !data.is_eval;
  }
  LatentGrid latent_grid() const;
  Usable open_all(const std::vector<VideoFiles>& found, const DataPaths& data,
                  IndexedVideos& opener) const;
  std::optional<Error> add(const VideoFiles& files, const DataPaths& data, IndexedVideos& opener,
                           Usable& usable) const;
  std::optional<Error> unfit(const VideoShape& video, const std::string& name) const;
  std::int64_t values_of_clip() const;
  double adversary_flops() const;

  std::string preset_name_;
  double preset_lr_ = 0;
  TaehvConfig config_;
  TaehvLoss loss_;
  ClipShape clip_;
  double bad_share_max_ = 0;
  std::string teacher_folder_;  // of latents; empty: there is no teacher
  std::int64_t replay_rows_ = 0;
  VideoReading reading_;
  std::string index_file_;  // empty: that of each folder
  VideoOpener opener_;
  std::vector<Setting> settings_;
};

/// The line of the registry.
WorkloadEntry taehv_entry();

}  // namespace tj::trainer
