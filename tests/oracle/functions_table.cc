// Makes docs/functions.md: one row per function of the backend, from the headers, the operations and the oracle cases.
//
// usage: functions_table [--check FILE | --write FILE]     (neither: prints the table)
#include <fstream>
#include <iostream>
#include <sstream>

#include "syncline/error.h"
#include "tests/oracle/oracle_case.h"
#include "tests/oracle/properties.h"
#include "tests/oracle/signatures.h"

namespace syncline::testing {
namespace {

constexpr const char* kHead = R"(# Functions

The 152 functions of the Keras 2 backend. `scripts/functions` writes this file from the headers, the operations and the
oracle cases (tests/oracle); a test fails if this file differs. `syncline/backend.h` includes all the headers.

- **dtypes**: of the operands in the oracle cases; for a function without operands, of its argument `dtype`.
- **gradient**: whether `gradients` goes through it, or why not; "–" where no result depends on an operand.
- **cases**: the number of oracle cases, and of those that also compare gradients.
- **several ranks**: what a plan does with operands whose rows (axis 0) are split over ranks, and in how many cases.
  *Row by row*: each rank computes its own rows. *Reductions over ranks*: an all-reduce of a result or a statistic.
  *Gathers*: rows are mixed, so every rank first gathers an operand. *Independent of rows*: the result does not depend
  on where rows are. Every case gives the result of one rank on 2 and 3 ranks too, however its operands are split.

)";

// Escapes '|', which ends a cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string row_of(const std::string& function, const std::string& group) {
  const Signature signature = signature_of(SYNCLINE_ROOT, function);
  const std::vector<OracleCase> cases = oracle_cases(function);
  if (signature.declarations.empty()) fail(function, ": no declaration in include/syncline/backend/*.h");
  if (cases.empty()) fail(function, ": no oracle case");
  std::string declarations;
  for (const std::string& text : signature.declarations)
    declarations += (declarations.empty() ? "`" : "<br>`") + text + "`";
  std::size_t with_gradient = 0;
  for (const OracleCase& row : cases) with_gradient += row.gradients.empty() ? 0 : 1;
  std::string count = std::to_string(cases.size());
  if (with_gradient > 0) count += " (" + std::to_string(with_gradient) + ")";
  return join_text("| `", function, "` | ", group, " | ", cell(declarations), " | ", signature.headers, " | ",
                   dtypes_of(cases), " | ", cell(gradient_of(cases)), " | ", count, " | ", cell(placement_of(cases)),
                   " |\n");
}

// The text of the file. Appends the functions whose rows cannot be written to `missing`, with the error.
std::string table(std::string& missing) {
  std::string text = kHead;
  text += "| function | group | C++ | header | dtypes | gradient | cases | several ranks |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::string& function : oracle_functions()) try {
      text += row_of(function, oracle_group(function));
    } catch (const std::exception& e) {
      missing += join_text(function, ": ", e.what(), "\n");
    }
  return text;
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int run(const std::string& option, const std::string& path) {
  std::string missing;
  const std::string text = table(missing);
  if (option == "--write") std::ofstream(path) << text;
  else if (option != "--check") std::cout << text;
  std::cerr << missing;
  if (option == "--check" && content_of(path) != text) {
    std::cerr << path << " is not what the functions are now; run scripts/functions\n";
    return 1;
  }
  return missing.empty() ? 0 : 1;
}

}  // namespace
}  // namespace syncline::testing

int main(int argc, char** argv) { return syncline::testing::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""); }
