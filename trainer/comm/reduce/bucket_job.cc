#include "trainer/comm/reduce/bucket_job.h"

#include <torch/types.h>

#include "trainer/comm/reduce/coded_sum.h"

namespace tj::trainer {
namespace {

constexpr int kTagsOfJobItself = 2 * kTagsOfSum;
static_assert(kTagsOfJobItself + kTagsOfSum <= kTagsOfJob);

/// Each gradient is a row, so that buckets which are cut anew change nothing.
std::vector<SumRow> rows_of(const BucketPlan& plan) {
  std::vector<SumRow> rows;
  for (const auto& piece : plan.pieces)
    rows.push_back(
        {.values = piece.values, .errors = piece.error(), .first_rank = piece.entry->index});
  return rows;
}

class RowJob final : public BucketJob {
 public:
  RowJob(Wire& wire, const BucketPlan& plan, Codec codec)
      : plan_(plan), sum_(wire, block_codec(codec), plan.first_tag) {}
  void start() override { sum_.start(rows_of(plan_), plan_.factor); }
  void finish() override { sum_.finish(); }
  void wait_sent() override { sum_.wait_sent(); }

 private:
  const BucketPlan plan_;
  CodedSum sum_;
};

class CheckedJob final : public BucketJob {
 public:
  CheckedJob(Wire& wire, const BucketPlan& plan, std::unique_ptr<BucketJob> job, CosineSums& sums)
      : values_(plan.values),
        factor_(plan.factor),
        job_(std::move(job)),
        sums_(sums),
        sum_(wire, block_codec(Codec::fp32), plan.first_tag + kTagsOfJobItself) {}

  void start() override {
    exact_.assign(values_.begin(), values_.end());
    job_->start();
    sum_.start({{.values = exact_}}, factor_);
  }
  void finish() override {
    job_->finish();
    sum_.finish();
    add_cosine(values_, exact_, sums_);
  }
  void wait_sent() override {
    job_->wait_sent();
    sum_.wait_sent();
  }

 private:
  const std::span<float> values_;
  const float factor_;
  std::unique_ptr<BucketJob> job_;
  CosineSums& sums_;
  std::vector<float> exact_;
  CodedSum sum_;
};

}  // namespace

std::span<float> BucketPiece::error() const {
  if (!entry->error.defined()) return {};
  return {entry->error.mutable_data_ptr<float>(), static_cast<std::size_t>(entry->error.numel())};
}

std::unique_ptr<BucketJob> make_row_job(Wire& wire, const BucketPlan& plan, Codec codec) {
  return std::make_unique<RowJob>(wire, plan, codec);
}

std::unique_ptr<BucketJob> make_checked_job(Wire& wire, const BucketPlan& plan,
                                            std::unique_ptr<BucketJob> job, CosineSums& sums) {
  return std::make_unique<CheckedJob>(wire, plan, std::move(job), sums);
}

}  // namespace tj::trainer
