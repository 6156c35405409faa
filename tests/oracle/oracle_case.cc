#include "tests/oracle/oracle_case.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "syncline/backend/function.h"
#include "syncline/error.h"

namespace syncline::testing {
namespace {

using nlohmann::json;

std::map<std::string, OracleCall>& calls() {
  static std::map<std::string, OracleCall> table;
  return table;
}

std::vector<std::byte> from_base64(const std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int, 256> value{};
  value.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i) value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  std::vector<std::byte> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = value[static_cast<unsigned char>(c)];
    if (digit < 0) break;  // '='
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xff));
  }
  return bytes;
}

Array array_from(const json& stored) {
  Array array(parse_dtype(stored.at("dtype").get<std::string>()), argument<Shape>(stored.at("shape")));
  const std::vector<std::byte> bytes = from_base64(stored.at("data").get_ref<const std::string&>());
  if (bytes.size() != array.bytes()) fail<IoError>("an array of ", array.bytes(), " bytes has ", bytes.size());
  if (!bytes.empty()) std::memcpy(array.raw(), bytes.data(), bytes.size());
  return array;
}

std::vector<std::optional<Array>> optional_arrays(const json& list) {
  std::vector<std::optional<Array>> arrays;
  for (const json& entry : list) {
    if (entry.is_null()) arrays.emplace_back();
    else arrays.emplace_back(array_from(entry));
  }
  return arrays;
}

OracleCase case_from(const std::string& function, const json& stored) {
  OracleCase row;
  row.function = function;
  row.name = stored.at("name");
  row.args = stored.at("args");
  row.inputs = optional_arrays(stored.at("inputs"));
  for (const json& entry : stored.at("outputs")) row.outputs.push_back(array_from(entry));
  row.gradients = optional_arrays(stored.value("gradients", json::array()));
  row.tolerance = stored.value("tolerance", "");
  row.open_batch.assign(row.inputs.size(), !stored.contains("open_batch"));
  for (const json& input : stored.value("open_batch", json::array()))
    row.open_batch.at(input.get<std::size_t>()) = true;
  row.ranks = stored.value("ranks", true);
  return row;
}

struct ListedFunction {
  std::string name, signature, group, documents, batch;
};

const std::vector<ListedFunction>& listed_functions() {
  static const auto list = [] {
    std::vector<ListedFunction> found;
    std::ifstream file(SYNCLINE_ORACLE_DIR "/functions.tsv");
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      ListedFunction& row = found.emplace_back();
      for (std::string* cell : {&row.name, &row.signature, &row.group, &row.documents, &row.batch})
        std::getline(cells, *cell, '\t');
    }
    return found;
  }();
  return list;
}

const ListedFunction& listed(const std::string& function) {
  for (const ListedFunction& row : listed_functions())
    if (row.name == function) return row;
  fail(function, " is not in tests/oracle/functions.tsv");
}

}  // namespace

const std::vector<std::string>& oracle_functions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const ListedFunction& row : listed_functions()) found.push_back(row.name);
    return found;
  }();
  return names;
}

const std::string& oracle_group(const std::string& function) { return listed(function).group; }

std::optional<std::size_t> oracle_batch(const std::string& function) {
  const std::string& cell = listed(function).batch;
  if (cell.empty()) fail(function, " says nothing of a batch in tests/oracle/functions.tsv");
  if (cell.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::stoul(cell);
}

std::vector<OracleCase> oracle_cases(const std::string& function) {
  const std::string path = SYNCLINE_ORACLE_DIR "/fixtures/" + function + ".json";
  std::vector<OracleCase> rows;
  if (!std::filesystem::exists(path)) return rows;
  try {
    std::ifstream file(path);
    const json fixture = json::parse(file);
    for (const json& stored : fixture.at("cases")) rows.push_back(case_from(function, stored));
  } catch (const std::exception& e) {
    fail<IoError>(path, ": ", e.what(), "; write it anew with scripts/oracle");
  }
  return rows;
}

std::vector<Expr> Call::tensors(int first, int count) const {
  const int last = count < 0 ? size() : first + count;
  return {tensors_.begin() + first, tensors_.begin() + last};
}

std::vector<int> Call::list(const std::string& key) const {
  if (!has(key)) return {};
  if (row_.args[key].is_array()) return get<std::vector<int>>(key);
  return {get<int>(key)};
}

Expr Answer::as_tensor(const Array& array) { return constant(array); }

Expr Answer::as_tensor(const std::string& text) {
  Array bytes(DType::kUint8, {static_cast<std::int64_t>(text.size())});
  std::copy(text.begin(), text.end(), bytes.data<std::uint8_t>());
  return as_tensor(bytes);
}

Expr Answer::as_tensor(const Shape& shape) {
  Array dims(DType::kInt32, {shape.ndim()});
  for (int i = 0; i < shape.ndim(); ++i) dims.data<std::int32_t>()[i] = static_cast<std::int32_t>(shape[i]);
  return as_tensor(dims);
}

OracleCall oracle_call(const std::string& function) {
  const auto found = calls().find(function);
  return found == calls().end() ? nullptr : found->second;
}

std::vector<std::string> called_functions() {
  std::vector<std::string> names;
  for (const auto& [name, call] : calls()) names.push_back(name);
  return names;
}

bool add_call(const char* function, OracleCall call) {
  if (!calls().emplace(function, call).second) {
    std::fprintf(stderr, "two oracle adapters of %s\n", function);
    std::abort();
  }
  return true;
}

}  // namespace syncline::testing
