// syncline convert IN OUT: the same arrays in another format.
#include <fmt/core.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/array_file.h"
#include "io/arrays/checkpoint_outline.h"
#include "io/arrays/npz.h"
#include "io/arrays/safetensors.h"
#include "io/files/atomic_file.h"
#include "syncline/checkpoint/checkpoint.h"
#include "tools/command.h"
#include "tools/confined.h"

namespace syncline::tools {
namespace {

struct Options {
  std::string in, out;
  bool force = false;
  Limits limits;
};

enum class Format { kCheckpoint, kNpz, kSafetensors };

Format format_of(const std::string& path) {
  if (path.ends_with(".npz")) return Format::kNpz;
  if (path.ends_with(".safetensors")) return Format::kSafetensors;
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) return Format::kCheckpoint;
  fail<ValueError>("convert: '", path, "' has an unknown ending; use .h5, .hdf5, .npz or .safetensors");
}

std::vector<io::NamedArray> all_of(io::ArrayFile& file) {
  std::vector<io::NamedArray> arrays;
  for (std::size_t i = 0; i < file.entries().size(); ++i) arrays.push_back({file.entries()[i].name, file.read(i)});
  return arrays;
}

// The child sends a safetensors file, because the format is simple to check, and a byte: kModel or kArrays.
constexpr char kModel = 1, kArrays = 0;
std::string content_of(const std::string& path) {
  const auto file = io::open_array_file(path);
  const Array image = io::serialize_safetensors(path, all_of(*file), file->outline());
  std::string content(reinterpret_cast<const char*>(image.raw()), image.bytes());
  content += file->holds_model() ? kModel : kArrays;
  return content;
}

// Warns that Keras cannot build the model from the new file; refuses to replace the model's own file.
void tell_of_model(const Options& options) {
  std::error_code missing;
  if (std::filesystem::equivalent(options.in, options.out, missing))
    fail<ValueError>("convert: '", options.in, "' holds a Keras model, and only its arrays are converted; give the ",
                     "new file another name");
  fmt::print(stderr, "syncline: convert: '{}' holds a Keras model; only its arrays are converted\n", options.in);
}

void write(const std::string& path, std::string& content, const std::string& source) {
  const Format format = format_of(path);
  const auto size = static_cast<std::int64_t>(content.size());
  const auto file = io::parse_safetensors(source, Array::borrow(DType::kUint8, {size}, content.data()));
  if (format == Format::kCheckpoint) return io::save_checkpoint(path, io::checkpoint_of(source, *file));
  if (format == Format::kSafetensors) return io::write_file_durably(path, std::as_bytes(std::span(content)));
  const Array image = io::serialize_npz(path, all_of(*file), file->outline());
  io::write_file_durably(path, {image.raw(), image.bytes()});
}

void convert(const Options& options) {
  format_of(options.out);  // checks the name before anything is read
  if (!options.force && ::access(options.out.c_str(), F_OK) == 0)
    fail<IoError>("convert: '", options.out, "' exists; --force replaces it");
  std::string content = run_confined({options.in}, options.limits, [&] { return content_of(options.in); });
  const bool model = !content.empty() && content.back() == kModel;
  if (!content.empty()) content.pop_back();
  if (model) tell_of_model(options);
  write(options.out, content, options.in);
}

}  // namespace

void add_convert(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "convert", "Write a file's arrays in another format: an HDF5 checkpoint, .npz or .safetensors");
  const auto options = std::make_shared<Options>();
  command->add_option("IN", options->in, "A file with arrays")->required();
  command
      ->add_option("OUT", options->out, "The new file; its ending selects the format: .h5, .hdf5, .npz or .safetensors")
      ->required();
  command->add_flag("--force", options->force, "Replace OUT if it exists");
  add_limits(*command, options->limits);
  command->callback([options] { convert(*options); });
}

}  // namespace syncline::tools
