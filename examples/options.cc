#include "examples/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <limits>

#include "syncline/distributed/keras_json.h"

namespace syncline::examples {
namespace {

// The text must be a decimal number of type Number: CLI11 converts -1 to 2^64 - 1, and 2^64 to the nearest value that
// fits. The messages of its own range checks print a range of 300 digits.
template <class Number>
CLI::Validator whole(Number least, Number most = std::numeric_limits<Number>::max()) {
  return {[=](std::string& text) {
            Number value = 0;
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stop == end && value >= least && value <= most) return std::string();
            return fmt::format("give a whole number from {} to {}, not '{}'", least, most, text);
          },
          fmt::format("at least {}", least)};
}

CLI::Validator at_least(std::int64_t least) { return whole(least); }

}  // namespace

int parse_options(int argc, char** argv, bool quiet, Options& o) {
  o.parts = keras_json().parts;
  CLI::App app("Trains a network on Fashion-MNIST, in one process or on several ranks under mpirun.", "fashion_mnist");
  app.add_option("--model", o.model, "softmax, mlp or cnn")
      ->check(CLI::IsMember({"softmax", "mlp", "cnn"}))
      ->capture_default_str();
  app.add_option("--optimizer", o.optimizer, "sgd, rmsprop, adam or adadelta")
      ->check(CLI::IsMember({"sgd", "rmsprop", "adam", "adadelta"}))
      ->capture_default_str();
  app.add_option("--data", o.data, "folder of the IDX files")->capture_default_str();
  app.add_option("--epochs", o.epochs, "passes over the training set")->check(at_least(1))->capture_default_str();
  app.add_option("--batch", o.batch, "rows per step, over all ranks")->check(at_least(1))->capture_default_str();
  app.add_option("--checkpoint", o.checkpoint,
                 "folder for checkpoints and status.json; signals end the training after a save")
      ->type_name("FOLDER");
  app.add_flag("--resume", o.resume,
               "continue from the newest checkpoint in FOLDER, if any; if FOLDER is an .h5 file, from that file");
  app.add_option("--save-every", o.save_every, "steps between saves, in addition to the save after each epoch")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--shards", o.shards, "files per checkpoint, each written by a different rank")
      ->check(whole(1))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seed of initial values, data order and dropout")
      ->check(whole<std::uint64_t>(0))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "threads per rank; 0: as many as its processors")
      ->check(whole(0))
      ->capture_default_str();
  app.add_option("--parts", o.parts,
                 "parts of each batch, a power of two: the result then has the same bits on any number of ranks up to "
                 "this one; 0: none")
      ->check(whole(0, KerasJson::kMostParts))
      ->capture_default_str();
  app.add_option("--floatx", o.floatx, "float32 or float64")
      ->check(CLI::IsMember({"float32", "float64"}))
      ->capture_default_str();
  app.add_option("--max-steps", o.max_steps, "stop after this many steps; 0: no limit")->check(at_least(0));
  app.add_option("--samples", o.samples, "rows of the training set to use; 0: all")->check(at_least(0));
  app.add_option("--csv", o.csv, "CSV file to write, one row per epoch");
  app.add_option("--tensorboard", o.tensorboard, "folder for TensorBoard's event files")->type_name("FOLDER");
  app.add_option("--metrics", o.metrics, "metrics file to write for a node exporter, NAME.prom");
  app.add_option("--early-stopping", o.early_stopping,
                 "stop after this many epochs without a better test loss; 0: never")
      ->check(at_least(0));
  app.add_flag("--verbose", o.verbose, "rank 0 prints to standard error how the ranks are connected");
  app.add_flag("--digest", o.digest, "every rank prints a digest of its variables at the end");
  try {
    app.parse(argc, argv);
    if (o.resume && o.checkpoint.empty()) throw CLI::RequiredError("--resume: --checkpoint");
  } catch (const CLI::Success& asked) {
    if (!quiet) app.exit(asked);
    return 0;
  } catch (const CLI::Error& e) {
    if (!quiet) std::cerr << "fashion_mnist: " << e.what() << " (--help lists the options)\n";
    return 2;
  }
  return -1;
}

}  // namespace syncline::examples
