#include "runtime/session/algorithm_file.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/session/json_file.h"
#include "syncline/error.h"

namespace syncline {
namespace {

using Json = nlohmann::ordered_json;
using comm::AlgorithmTable;

template <class T>
T number_of(const Json& value, const std::string& where, T most) {
  if (!value.is_number_unsigned()) fail<ValueError>(where, " is ", value.dump(), "; give a whole number, 0 or more");
  return static_cast<T>(std::min(value.get<std::uint64_t>(), static_cast<std::uint64_t>(most)));
}

comm::Algorithm algorithm_of(const Json& value, const std::string& where) {
  if (value == "direct") return comm::Algorithm::kDirect;
  if (value == "halves") return comm::Algorithm::kHalves;
  fail<ValueError>(where, " is ", value.dump(), "; give \"direct\" or \"halves\"");
}

AlgorithmTable::Row row_of(const Json& json, const std::string& where, bool has_bytes) {
  const std::string keys = has_bytes ? "nodes, bytes and algorithm" : "nodes and algorithm";
  if (!json.is_object() || !json.contains("algorithm"))
    fail<ValueError>(where, " is ", json.dump(), "; give an object with an algorithm");
  AlgorithmTable::Row row;
  for (const auto& [key, value] : json.items()) {
    const std::string place = join_text(where, ": \"", key, '"');
    if (key == "nodes") row.nodes = number_of(value, place, AlgorithmTable::kAnyNodes);
    else if (key == "bytes" && has_bytes) row.bytes = number_of(value, place, AlgorithmTable::kAnyBytes);
    else if (key == "algorithm") row.algorithm = algorithm_of(value, place);
    else fail<ValueError>(place, " is not a column; the columns are ", keys);
  }
  return row;
}

}  // namespace

AlgorithmTable read_algorithm_file(const std::string& path) {
  const Json json = read_json_file(path, "correct the path, or make the file readable");
  if (!json.is_object()) fail<ValueError>(path, ": holds ", json.dump(), "; give an object of tables");
  AlgorithmTable table;
  for (const auto& [key, rows] : json.items()) {
    const std::string where = join_text(path, ": \"", key, '"');
    std::vector<AlgorithmTable::Row>* own = nullptr;
    if (key == "meetings") own = &table.meetings;
    else if (key == "sums") own = &table.sums;
    else if (key == "gathers") own = &table.gathers;
    else fail<ValueError>(where, " is not a table; the tables are meetings, sums and gathers");
    if (!rows.is_array()) fail<ValueError>(where, " is ", rows.dump(), "; give a list of rows");
    std::vector<AlgorithmTable::Row> read;
    for (const Json& row : rows)
      read.push_back(row_of(row, join_text(where, " row ", read.size() + 1), own != &table.meetings));
    own->insert(own->begin(), read.begin(), read.end());
  }
  return table;
}

}  // namespace syncline
