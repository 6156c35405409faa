#include "syncline/checkpoint/folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>

#include "io/hdf5/file.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

Checkpoint at_step(std::int64_t step, std::optional<double> metric = {}) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.state.global_step = step;
  checkpoint.metric = metric;
  checkpoint.layers[0].weights[0].value.data<float>()[0] = static_cast<float>(step);
  return checkpoint;
}

std::string file_of(int step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(10 - digits.size(), '0') + digits + ".h5";
}

using Names = std::vector<std::string>;

void write_variable_texts(const Hdf5Group& group, const char* name, const std::array<const char*, 2>& texts) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  const hsize_t count = texts.size();
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(group.id(), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  ASSERT_GE(H5Awrite(attribute.get(), type.get(), texts.data()), 0);
}

void copy_group(const Hdf5Group& from, const char* name, const Hdf5Group& to) {
  ASSERT_GE(H5Ocopy(from.id(), name, to.id(), name, H5P_DEFAULT, H5P_DEFAULT), 0);
}

class Folder : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path("run/" + name); }
  std::string link(const std::string& name) const { return std::filesystem::read_symlink(path(name)).string(); }
  Names files() const {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void damage(int step) const {
    std::string bytes = read_file(path(file_of(step)));
    bytes.resize(bytes.size() - 100);
    write_file(path(file_of(step)), bytes);
  }
  // Loads a checkpoint, sets warning_ and returns the step; -1 if there is none.
  std::int64_t loaded_step() {
    const std::optional<FolderLoad> loaded = CheckpointFolder(directory_).load();
    if (!loaded) return -1;
    warning_ = loaded->warning;
    EXPECT_ONE_LINE(warning_);
    expect_equal(loaded->checkpoint, at_step(loaded->checkpoint.state.global_step));
    return loaded->checkpoint.state.global_step;
  }

  Scratch scratch_;
  std::string directory_ = scratch_.path("run");
  std::string warning_;
};

TEST_F(Folder, KeepsTheLastAndMovesLatest) {
  const CheckpointFolder folder(directory_, {.keep_last = 2});
  EXPECT_EQ(folder.save(at_step(1)), path(file_of(1)));
  EXPECT_EQ(link("latest"), file_of(1));
  for (const int step : {2, 3, 4}) folder.save(at_step(step));
  EXPECT_EQ(files(), (Names{"latest", file_of(3), file_of(4)}));
  EXPECT_EQ(link("latest"), file_of(4));
  EXPECT_EQ(loaded_step(), 4);
  EXPECT_EQ(warning_, "");
  expect_equal(load_checkpoint(path("latest")), at_step(4));
}

TEST_F(Folder, KeepsTheBest) {
  const CheckpointFolder folder(directory_, {.keep_last = 1, .keep_best = 2});
  const std::vector<double> losses{0.5, 0.25, NAN, 0.375, 0.75, 0.25, 1};
  for (std::size_t i = 0; i < losses.size(); ++i) folder.save(at_step(static_cast<int>(i), losses[i]));
  EXPECT_EQ(files(), (Names{"best", "latest", file_of(1), file_of(5), file_of(6)}));
  EXPECT_EQ(link("best"), file_of(5));  // the newer of two equal ones
  EXPECT_EQ(load_checkpoint(path("best")).metric, 0.25);
}

TEST_F(Folder, HigherMayBeBetter) {
  const CheckpointFolder folder(directory_, {.keep_last = 1, .keep_best = 1, .higher_is_better = true});
  for (const int step : {1, 2, 3}) folder.save(at_step(step, step == 2 ? 0.9 : 0.1));
  EXPECT_EQ(files(), (Names{"best", "latest", file_of(2), file_of(3)}));
  EXPECT_EQ(link("best"), file_of(2));
}

TEST_F(Folder, AClockThatIsSetBackMakesNoNewFileOld) {
  const CheckpointFolder folder(directory_, {.keep_last = 2});
  for (const int step : {1, 2}) {
    folder.save(at_step(step));
    std::filesystem::last_write_time(path(file_of(step)),
                                     std::filesystem::file_time_type::clock::now() + std::chrono::hours(step));
  }
  for (const int step : {3, 4}) folder.save(at_step(step));
  EXPECT_EQ(files(), (Names{"latest", file_of(3), file_of(4)}));
  EXPECT_EQ(link("latest"), file_of(4));
}

TEST_F(Folder, OptionsAreChecked) {
  EXPECT_CONTAINS(message_of<ValueError>([] { CheckpointFolder("a", {.keep_last = 0}); }),
                  "keep_last must be 1 or more");
  EXPECT_CONTAINS(message_of<ValueError>([] { CheckpointFolder("a", {.keep_best = -1}); }), "keep_best -1");
}

TEST_F(Folder, NothingToLoad) {
  EXPECT_EQ(loaded_step(), -1);
  ASSERT_EQ(::mkdir(directory_.c_str(), 0777), 0);
  write_file(path("notes.h5"), "mine");
  write_file(path("step-1.h5"), "not a name of ours");
  EXPECT_EQ(loaded_step(), -1);
  CheckpointFolder(directory_, {.keep_last = 1}).save(at_step(7));
  EXPECT_EQ(files(), (Names{"latest", "notes.h5", file_of(7), "step-1.h5"}));
}

TEST_F(Folder, GoesBackFromDamage) {
  const CheckpointFolder folder(directory_);
  for (const int step : {1, 2, 3}) folder.save(at_step(step));
  damage(3);
  EXPECT_EQ(loaded_step(), 2);
  EXPECT_CONTAINS(warning_, "going back to '" + file_of(2) +
                                "', the newest undamaged checkpoint, because checkpoint '" + path(file_of(3)) +
                                "': cannot open the HDF5 file");
  damage(2);
  EXPECT_EQ(loaded_step(), 1);
  damage(1);
  const std::string message = message_of([&] { folder.load(); });
  EXPECT_CONTAINS(message, "all of its checkpoints (3) are damaged: checkpoint '" + path(file_of(3)));
  EXPECT_ONE_LINE(message);
}

TEST_F(Folder, AfterGoingBackTheNewOnesAreTheNewest) {
  const CheckpointFolder folder(directory_, {.keep_last = 2});
  for (const int step : {10, 20}) folder.save(at_step(step));
  damage(20);
  ASSERT_EQ(loaded_step(), 10);
  for (const int step : {15, 18}) folder.save(at_step(step));
  EXPECT_EQ(files(), (Names{"latest", file_of(15), file_of(18)}));
  damage(18);
  EXPECT_EQ(loaded_step(), 15);
}

TEST_F(Folder, LinksThatAreNotOurs) {
  const CheckpointFolder folder(directory_);
  folder.save(at_step(1));
  for (const char* target : {"../elsewhere.h5", "/etc/passwd", "step-0000000099.h5"}) {
    ASSERT_EQ(::unlink(path("latest").c_str()), 0);
    ASSERT_EQ(::symlink(target, path("latest").c_str()), 0);
    EXPECT_EQ(loaded_step(), 1);
    EXPECT_NE(warning_, "");
  }
  ASSERT_EQ(::unlink(path("latest").c_str()), 0);
  EXPECT_EQ(loaded_step(), 1);
  EXPECT_CONTAINS(warning_, "no link 'latest'");
}

// load() throws, because the caller would otherwise silently start from scratch in a folder that had a training.
TEST_F(Folder, OnlyALatestThatLeadsElsewhere) {
  const CheckpointFolder folder(directory_);
  std::filesystem::create_directory(directory_);
  std::filesystem::create_symlink("../elsewhere.h5", path("latest"));
  EXPECT_CONTAINS(message_of([&] { folder.load(); }),
                  "'latest' points at '../elsewhere.h5', which is not a checkpoint of");
  std::filesystem::remove(path("latest"));
  save_checkpoint(path("latest"), at_step(1));
  EXPECT_CONTAINS(message_of([&] { folder.load(); }),
                  "'latest' is not a symbolic link, and there is no other checkpoint");
}

TEST_F(Folder, AFifoIsNotWaitedFor) {
  ::alarm(20);
  const CheckpointFolder folder(directory_);
  folder.save(at_step(1));
  ASSERT_EQ(::mkfifo(path(file_of(2)).c_str(), 0666), 0);
  std::filesystem::remove(path("latest"));
  std::filesystem::create_symlink(file_of(2), path("latest"));
  EXPECT_EQ(loaded_step(), 1);
  EXPECT_CONTAINS(warning_, "it is not a regular file");
  ASSERT_EQ(::mkfifo(path(file_of(3) + ".tmp").c_str(), 0666), 0);
  EXPECT_CONTAINS(message_of([&] { folder.save(at_step(3)); }), file_of(3) + "': opening '");
  ::alarm(0);
}

// HDF5 never finishes reading a variable-length text whose size is damaged.
TEST_F(Folder, FilesOfKerasAreNotLookedInto) {
  ::alarm(20);
  const CheckpointFolder folder(directory_);
  folder.save(at_step(1));
  for (const bool ours : {false, true}) {
    {
      const Hdf5Session session;
      Hdf5File file = Hdf5File::create(path(file_of(2)));
      write_variable_texts(file.root(), "layer_names", {"alpha", "b"});
      if (ours) {
        save_checkpoint(path("whole.h5"), at_step(2));
        copy_group(Hdf5File::open(path("whole.h5")).root(), "syncline", file.root());
      }
      file.commit();
    }
    std::string bytes = read_file(path(file_of(2)));
    const std::size_t heap = bytes.find("GCOL");
    ASSERT_NE(heap, std::string::npos);
    bytes.replace(heap + 24, 8, 8, '\0');
    write_file(path(file_of(2)), bytes);
    EXPECT_CONTAINS(
        message_of([&] { load_checkpoint(path(file_of(2)), KerasFiles::kRefused); }),
        ours ? "/layer_names: is text of variable length, which Syncline never writes" : "holds weights only");
    std::filesystem::remove(path("latest"));
    std::filesystem::create_symlink(file_of(2), path("latest"));
    EXPECT_EQ(loaded_step(), 1);
    EXPECT_FALSE(folder.make_room());
    folder.save(at_step(3));
    EXPECT_EQ(link("latest"), file_of(3));
    std::filesystem::remove(path(file_of(3)));
  }
  ::alarm(0);
}

TEST_F(Folder, AnOldFileThatCannotBeRemovedStays) {
  const CheckpointFolder folder(directory_, {.keep_last = 1, .keep_best = 0});
  folder.save(at_step(2));
  std::filesystem::create_directory(path(file_of(1)));  // unlink removes no directory
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(path(file_of(1)), now - std::chrono::hours(2));
  std::filesystem::last_write_time(path(file_of(2)), now - std::chrono::hours(1));
  const std::string message = message_of([&] { folder.save(at_step(3)); });
  EXPECT_CONTAINS(message, "cannot remove '" + file_of(1) + "'");
  EXPECT_CONTAINS(message, "the new checkpoint '" + file_of(3) + "' is saved");
  EXPECT_EQ(files(), (Names{"latest", file_of(1), file_of(3)}));
  EXPECT_THROW(folder.save(at_step(4)), SurplusError);
  EXPECT_EQ(loaded_step(), 4);
}

TEST_F(Folder, WhatLatestPointsAtStays) {
  const CheckpointFolder folder(directory_, {.keep_last = 1});
  folder.save(at_step(1));
  // After the clock is set back, the new file looks older than the previous one.
  std::filesystem::last_write_time(path(file_of(1)),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  folder.save(at_step(2));
  EXPECT_EQ(link("latest"), file_of(2));
  EXPECT_EQ(loaded_step(), 2);
}

TEST_F(Folder, WhatCannotBeOpenedIsNotRemoved) {
  const CheckpointFolder folder(directory_, {.keep_last = 1});
  folder.save(at_step(2));
  std::filesystem::create_directory(path(file_of(1)));
  folder.save(at_step(3));
  EXPECT_EQ(files(), (Names{"latest", file_of(1), file_of(3)}));
}

TEST_F(Folder, TemporariesOfKilledSavesGo) {
  const CheckpointFolder folder(directory_);
  folder.save(at_step(1));
  write_file(path(file_of(5) + ".tmp"), "half");
  write_file(path("mine.tmp"), "not ours");
  ASSERT_EQ(::symlink("nowhere", path("latest.tmp").c_str()), 0);
  folder.save(at_step(2));
  EXPECT_EQ(files(), (Names{"latest", "mine.tmp", file_of(1), file_of(2)}));
}

TEST_F(Folder, AKillLeavesAWholeLatest) {
  CheckpointFolder(directory_).save(at_step(0));
  std::mt19937 random(11);
  std::int64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const CheckpointFolder folder(directory_, {.keep_last = 2});
      for (std::int64_t step = last + 1;; ++step) folder.save(at_step(step, static_cast<double>(step % 7)));
    }
    ::usleep(random() % (30000 * (1 + round / 4)));  // the first save under a sanitizer is slow
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::optional<FolderLoad> loaded = CheckpointFolder(directory_).load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->warning, "");
    EXPECT_GE(loaded->checkpoint.state.global_step, last);
    last = loaded->checkpoint.state.global_step;
  }
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace syncline::io
