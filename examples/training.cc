#include "examples/training.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/digest.h"
#include "syncline/backend/config.h"
#include "syncline/backend/math.h"
#include "syncline/data/loader.h"
#include "syncline/session.h"
#include "syncline/training/callbacks/csv_logger.h"
#include "syncline/training/callbacks/early_stopping.h"
#include "syncline/training/callbacks/metrics_exporter.h"
#include "syncline/training/callbacks/progress_bar.h"
#include "syncline/training/callbacks/tensor_board.h"
#include "syncline/training/first_rank.h"

namespace syncline::examples {
namespace {

constexpr std::int64_t kScoreRows = 1000;  // of an evaluation step
const std::vector<std::string> kOutputs{"loss", "accuracy"};

Optimizer make_optimizer(const std::string& name, const Expr& loss, std::span<const Variable> weights) {
  if (name == "sgd") return sgd(loss, weights, {.learning_rate = 0.05, .momentum = 0.9});
  if (name == "rmsprop") return rmsprop(loss, weights);
  if (name == "adadelta") return adadelta(loss, weights);
  if (name == "adam") return adam(loss, weights);
  fail<ValueError>("unknown optimizer '", name, "'; use sgd, rmsprop, adam or adadelta");
}

}  // namespace

void require_equal_options(const Options& o, comm::Communicator& communicator) {
  const std::array<const char*, 6> names{"--seed",       "--epochs", "--max-steps",
                                         "--save-every", "--shards", "--early-stopping"};
  const std::array<std::uint64_t, names.size()> own{o.seed,
                                                    static_cast<std::uint64_t>(o.epochs),
                                                    static_cast<std::uint64_t>(o.max_steps),
                                                    static_cast<std::uint64_t>(o.save_every),
                                                    static_cast<std::uint64_t>(o.shards),
                                                    static_cast<std::uint64_t>(o.early_stopping)};
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint64_t> all(ranks * names.size());
  const std::vector<std::int64_t> bytes(ranks, sizeof own);
  communicator.wait(communicator.all_gather({.names = comm::remember_names("whether all ranks have the same options")},
                                            own.data(), all.data(), bytes));
  for (std::size_t i = names.size(); i < all.size(); ++i)
    if (const std::size_t option = i % names.size(); all[i] != all[option])
      fail<DisagreementError>("ranks 0 and ", i / names.size(), " are not alike: rank 0 has ", names[option], " ",
                              all[option], ", rank ", i / names.size(), " has ", all[i],
                              "; start all ranks with the same options");
}

Data read_data(const Options& options) {
  Data data{io::load_fashion_mnist(options.data, io::Split::kTrain),
            io::load_fashion_mnist(options.data, io::Split::kTest)};
  if (options.samples > 0 && options.samples < data.train.images.shape()[0])
    data.train = {data.train.images.rows(0, options.samples), data.train.labels.rows(0, options.samples)};
  return data;
}

std::string checkpoint_folder(const Options& options, comm::Communicator& communicator) {
  std::filesystem::path path(options.checkpoint);
  std::error_code missing;
  if (path.extension() == ".h5" && std::filesystem::is_regular_file(path, missing)) path.replace_extension();
  return training::as_first_rank_says(&communicator, "the folder for checkpoints", path.string());
}

std::unique_ptr<training::FoundCheckpoint> find_checkpoint(const Options& options, const std::string& folder,
                                                           comm::Communicator& communicator) {
  auto found = training::find_checkpoint(folder, &communicator);
  const std::string path =
      training::as_first_rank_says(&communicator, "the path of the checkpoint", options.checkpoint);
  return found || path == folder ? std::move(found) : training::find_checkpoint(path, &communicator);
}

Training::Training(const Options& options, Data data, const std::string& folder, comm::Communicator& communicator,
                   training::Requests* requests)
    : options_(options), data_(std::move(data)) {
  build();
  saved_ = {options_.model, model_.layers, optimizer_.weights};
  add_callbacks(folder, communicator, requests);
  training::FitOptions fit{.step = step_.get(),
                           .names = kOutputs,
                           .batches = train_batches(),
                           .epochs = options_.epochs,
                           .max_steps = options_.max_steps};
  if (watched()) fit.evaluate = [this] { return evaluate(); };
  for (const auto& callback : callbacks_) fit.callbacks.push_back(callback.get());
  fit_ = std::make_unique<training::Fit>(std::move(fit));
}

bool Training::watched() const {
  return options_.early_stopping > 0 || !options_.csv.empty() || !options_.tensorboard.empty() ||
         !options_.metrics.empty();
}

void Training::add_callbacks(const std::string& folder, comm::Communicator& communicator,
                             training::Requests* requests) {
  const auto add = [this](std::unique_ptr<training::Callback> callback) { callbacks_.push_back(std::move(callback)); };
  add(std::make_unique<training::ProgressBar>(&communicator));
  if (options_.early_stopping > 0)
    add(std::make_unique<training::EarlyStopping>(
        training::EarlyStoppingOptions{.monitor = "val_loss", .patience = options_.early_stopping}));
  if (!options_.csv.empty()) add(std::make_unique<training::CsvLogger>(options_.csv, &communicator));
  if (!options_.tensorboard.empty())
    add(std::make_unique<training::TensorBoard>(
        training::TensorBoardOptions{.folder = options_.tensorboard, .communicator = &communicator}));
  if (!options_.metrics.empty())
    add(std::make_unique<training::MetricsExporter>(training::MetricsExporterOptions{
        .path = options_.metrics, .communicator = &communicator, .checkpoints = folder}));
  if (!folder.empty())
    add(std::make_unique<training::Job>(training::JobOptions{.folder = folder,
                                                             .save_every = options_.save_every,
                                                             .monitor = watched() ? "val_loss" : "",
                                                             .shards = options_.shards,
                                                             .model = saved_,
                                                             .communicator = &communicator,
                                                             .requests = requests}));
}

void Training::build() {
  const DType floatx = syncline::floatx();
  const Expr images = placeholder({.shape = {kUnknown, 28, 28}, .dtype = DType::kUint8, .name = "images"});
  const Expr labels = placeholder({.shape = {kUnknown}, .dtype = DType::kUint8, .name = "labels"});
  model_ = make_model(options_.model, cast(images, floatx) / 255.0);
  const Expr classes = cast(labels, DType::kInt32);
  const Expr loss = mean_loss(classes, model_.logits), right = accuracy(classes, model_.logits);
  optimizer_ = make_optimizer(options_.optimizer, loss, model_.weights());
  const std::vector<Expr> inputs{images, labels, learning_phase()};
  step_ = std::make_unique<Function>(inputs, std::vector<Expr>{loss, right}, optimizer_.updates, "train");
  score_ = std::make_unique<Function>(inputs, std::vector<Expr>{loss, right}, std::vector<Update>{}, "evaluate");
}

// Makes the loader with the first batch, when the session has its final seed, which may be that of a checkpoint.
training::Batches Training::train_batches() const {
  training::Batches batches{.samples = data_.train.images.shape()[0], .batch = options_.batch, .read = {}};
  batches.read = [this, loader = std::shared_ptr<io::Loader>()](std::int64_t epoch, std::int64_t step) mutable {
    // No prefetch: the rows are in memory, and copying those of a batch takes no longer than waking a thread.
    if (!loader)
      loader = std::make_shared<io::Loader>(
          io::array_source({{"images", data_.train.images}, {"labels", data_.train.labels}}),
          io::LoaderOptions{.batch = options_.batch, .seed = Session::current().seed(), .prefetch = 0});
    io::Batch feeds = loader->batch(epoch, step);
    feeds.push_back(Array::scalar(true));
    return feeds;
  };
  return batches;
}

training::Batches Training::test_batches() const {
  training::Batches batches{.samples = data_.test.images.shape()[0], .batch = kScoreRows, .read = {}};
  batches.read = [this](std::int64_t, std::int64_t step) {
    const std::int64_t begin = step * kScoreRows, end = std::min(begin + kScoreRows, data_.test.images.shape()[0]);
    return std::vector<Array>{data_.test.images.rows(begin, end), data_.test.labels.rows(begin, end),
                              Array::scalar(false)};
  };
  return batches;
}

void Training::resume(training::FoundCheckpoint& found) { found.resume(saved_, *fit_); }

training::Logs Training::evaluate() { return training::evaluate(*score_, kOutputs, test_batches()); }

std::uint64_t Training::digest() const {
  std::uint64_t digest = kEmptyDigest;
  for (const Variable& v : training::variables_of(saved_)) {
    const Array value = get_value(v);
    digest = digest_bytes(value.raw(), value.bytes(), digest);
  }
  return digest;
}

}  // namespace syncline::examples
