#include "tests/oracle/signatures.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>

namespace syncline::testing {
namespace {

// The text without comments and preprocessor lines, all white space as single blanks.
std::string plain_text(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    text += line.substr(0, line.find("//")) + ' ';
  }
  std::string plain;
  for (const char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) plain += c;
    else if (!plain.empty() && plain.back() != ' ') plain += ' ';
  return plain;
}

// Statements up to their ';' or '{' inside the namespace, and inside `class Function`.
std::vector<std::string> statements_of(const std::string& path) {
  std::vector<std::string> found, open;  // heads of the open braces
  std::string head;
  int parentheses = 0;
  auto is_namespace = [](const std::string& text) { return text.starts_with("namespace "); };
  for (const char c : plain_text(path)) {
    const bool visible = std::ranges::all_of(open, is_namespace) || (open.size() == 2 && open[1] == "class Function");
    if (c == '(') ++parentheses;
    if (c == ')') --parentheses;
    if (parentheses > 0 || (c != ';' && c != '{' && c != '}')) {
      head += c;
      continue;
    }
    while (head.starts_with(' ') || head.starts_with("public: ")) head.erase(0, head.starts_with(' ') ? 1 : 8);
    while (head.ends_with(' ')) head.pop_back();
    if (visible && c != '}' && !head.empty()) found.push_back(head);
    if (c == '{') open.push_back(head);
    if (c == '}' && !open.empty()) open.pop_back();
    head.clear();
  }
  return found;
}

// Headers and their statements, read once.
const std::map<std::string, std::vector<std::string>>& headers(const std::string& root) {
  static const auto table = [&] {
    std::map<std::string, std::vector<std::string>> statements;
    for (const auto& entry : std::filesystem::directory_iterator(root + "/include/syncline/backend"))
      statements["syncline/backend/" + entry.path().filename().string()] = statements_of(entry.path());
    return statements;
  }();
  return table;
}

bool declares(const std::string& statement, const std::string& name) {
  const std::size_t at = statement.find(name + "(");
  if (at == std::string::npos || statement.find('(') != at + name.size()) return false;
  return at == 0 ? name == "Function" : statement[at - 1] == ' ' || statement[at - 1] == '&';
}

// True for declarations that the backend does not have: a random function of a given key, the move of Function.
bool is_hidden(const std::string& statement) {
  return statement.find("RandomKey") != std::string::npos || statement.find("Function&&") != std::string::npos;
}

}  // namespace

std::string spelling_of(const std::string& function) {
  if (function == "function") return "Function";
  return function == "switch" ? "switch_" : function;
}

Signature signature_of(const std::string& root, const std::string& function) {
  Signature signature;
  for (const auto& [header, statements] : headers(root)) {
    bool named = false;
    for (std::string statement : statements) {
      if (statement.starts_with("inline ")) statement.erase(0, 7);
      if (!declares(statement, spelling_of(function)) || is_hidden(statement)) continue;
      signature.declarations.push_back(statement);
      if (!named) signature.headers += (signature.headers.empty() ? "" : ", ") + header;
      named = true;
    }
  }
  return signature;
}

}  // namespace syncline::testing
