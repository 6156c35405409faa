// The command line of the Fashion-MNIST example.
#pragma once

#include <cstdint>
#include <string>

namespace syncline::examples {

struct Options {
  std::string model = "cnn";       // softmax, mlp, cnn
  std::string optimizer = "adam";  // sgd, rmsprop, adam, adadelta
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string checkpoint;          // a folder; empty: nothing is saved
  std::string floatx = "float32";  // or float64
  std::int64_t epochs = 3;
  std::int64_t batch = 128;               // rows of a step, over all ranks
  std::int64_t save_every = 200;          // steps; also at the end of each epoch
  int shards = 1;                         // files of a checkpoint
  std::int64_t max_steps = 0;             // 0: no limit
  std::string csv, tensorboard, metrics;  // files, and a folder, to write; empty: none
  std::int64_t early_stopping = 0;        // epochs without a better loss of the test set; 0: never
  std::int64_t samples = 0;               // rows of the training set to use; 0: all
  std::uint64_t seed = 1;
  int parts = 0;    // of a batch (syncline/distributed/data_parallel.h)
  int threads = 0;  // of a rank; 0: what its affinity mask allows
  bool resume = false;
  bool verbose = false;  // rank 0 says how the ranks are joined
  bool digest = false;   // every rank prints a digest of its variables at the end
};

// Returns -1 to continue, 0 after --help, 2 if the arguments are wrong. Unless `quiet`, prints the help or a line with
// the error. Reads the default of --parts from keras.json and the environment, and throws as keras_json() does.
int parse_options(int argc, char** argv, bool quiet, Options& options);

}  // namespace syncline::examples
