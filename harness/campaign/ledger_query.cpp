#include "harness/campaign/ledger_query.h"

#include <sqlite3.h>

#include <algorithm>
#include <memory>

namespace kv {
namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

constexpr const char* kSchema = R"(
CREATE TABLE runs(line INTEGER, number INTEGER, outcome TEXT, variant TEXT, fingerprint TEXT,
                  history INTEGER, file TEXT, new_feature_pairs INTEGER);
CREATE TABLE deaths(line INTEGER, worker INTEGER, number INTEGER, status INTEGER, set_aside TEXT);
CREATE VIEW cases AS SELECT * FROM runs WHERE line IN (SELECT max(line) FROM runs GROUP BY number);
CREATE VIEW findings AS SELECT * FROM cases WHERE fingerprint IS NOT NULL;
CREATE VIEW faults AS SELECT fingerprint, count(*) AS count, min(number) AS first, file
                      FROM findings GROUP BY fingerprint ORDER BY count DESC, fingerprint;
)";

constexpr int kStepsEach = 1'000'000;  // between two looks at the limit
constexpr size_t kWidthMax = 100;      // of a column, for a person

Error sql_error(sqlite3* db) { return bad_input(std::string("--sql: ") + sqlite3_errmsg(db)); }

Result<Statement> prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &made, &rest);
  Statement statement(made, sqlite3_finalize);
  if (code != SQLITE_OK) return sql_error(db);
  if (made == nullptr) return bad_input("--sql: expected a SELECT, got nothing");
  if (std::string(rest).find_first_not_of(" \t\r\n;") != std::string::npos)
    return bad_input("--sql: expected one statement, got more");
  return statement;
}

void bind(sqlite3_stmt* statement, int index, const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) {
    sqlite3_bind_null(statement, index);
  } else if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  } else if (found->is_boolean()) {
    sqlite3_bind_int64(statement, index, found->get<bool>());
  } else if (found->is_number_integer()) {
    sqlite3_bind_int64(statement, index, found->get<int64_t>());
  } else if (found->is_number_float()) {
    sqlite3_bind_double(statement, index, found->get<double>());
  } else {
    sqlite3_bind_null(statement, index);
  }
}

Result<void> fill(sqlite3* db, const LedgerLines& ledger, const std::string& event,
                  const std::string& table, const std::vector<const char*>& keys) {
  std::string places = "?";
  for (size_t i = 0; i < keys.size(); ++i) places += ",?";
  KV_ASSIGN_OR_RETURN(const Statement insert,
                      prepare(db, "INSERT INTO " + table + " VALUES(" + places + ")"));
  for (size_t i = 0; i < ledger.lines.size(); ++i) {
    const auto& line = ledger.lines[i];
    const auto what = line.find("event");
    if (what == line.end() || *what != event) continue;
    sqlite3_reset(insert.get());
    sqlite3_bind_int64(insert.get(), 1, static_cast<sqlite3_int64>(i + 1));
    for (size_t k = 0; k < keys.size(); ++k)
      bind(insert.get(), static_cast<int>(k + 2), line, keys[k]);
    if (sqlite3_step(insert.get()) != SQLITE_DONE) return sql_error(db);
  }
  return {};
}

/// Reading only: no file is attached, no extension loaded, nothing written.
int authorise(void*, int action, const char*, const char* function, const char*, const char*) {
  if (action == SQLITE_FUNCTION)
    return std::string(function) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE;
  return reads ? SQLITE_OK : SQLITE_DENY;
}

int count_steps(void* left) { return --*static_cast<uint64_t*>(left) == 0; }

nlohmann::ordered_json value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return nullptr;
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

Result<QueryRows> read_rows(sqlite3* db, sqlite3_stmt* statement) {
  QueryRows all;
  const int columns = sqlite3_column_count(statement);
  for (int i = 0; i < columns; ++i) all.columns.emplace_back(sqlite3_column_name(statement, i));
  for (;;) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) return all;
    if (code == SQLITE_INTERRUPT) return bad_input("--sql: expected a query of less work");
    if (code != SQLITE_ROW) return sql_error(db);
    if (all.rows.size() == kQueryRowsMax)
      return bad_input("--sql: expected at most 100000 rows, got more: add a LIMIT");
    auto& row = all.rows.emplace_back();
    for (int i = 0; i < columns; ++i) row.push_back(value_of(statement, i));
  }
}

/// One line, printable: a ledger may hold anything.
std::string cell_text(const nlohmann::ordered_json& value) {
  std::string text = value.is_string() ? value.get<std::string>()
                     : value.is_null() ? "-"
                                       : value.dump();
  if (text.size() > kWidthMax) text.resize(kWidthMax);
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return text;
}

}  // namespace

Result<QueryRows> query_ledger(const LedgerLines& ledger, const std::string& sql) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
  const Database db(opened, sqlite3_close);
  if (code != SQLITE_OK) return environment_error("SQLite: no database in memory");
  if (sqlite3_exec(db.get(), kSchema, nullptr, nullptr, nullptr) != SQLITE_OK)
    return sql_error(db.get());
  KV_RETURN_IF_ERROR(
      fill(db.get(), ledger, "case", "runs",
           {"case", "outcome", "variant", "fingerprint", "history", "file", "new_feature_pairs"}));
  KV_RETURN_IF_ERROR(
      fill(db.get(), ledger, "worker_died", "deaths", {"worker", "case", "status", "set_aside"}));
  uint64_t left = kQueryStepsMax / kStepsEach;
  sqlite3_limit(db.get(), SQLITE_LIMIT_LENGTH, 16 << 20);
  sqlite3_set_authorizer(db.get(), authorise, nullptr);
  sqlite3_progress_handler(db.get(), kStepsEach, count_steps, &left);
  KV_ASSIGN_OR_RETURN(const Statement statement, prepare(db.get(), sql));
  return read_rows(db.get(), statement.get());
}

std::string query_text(const QueryRows& rows) {
  std::vector<std::vector<std::string>> cells = {rows.columns};
  for (const auto& row : rows.rows) {
    auto& line = cells.emplace_back();
    for (const auto& value : row) line.push_back(cell_text(value));
  }
  std::vector<size_t> widths(rows.columns.size());
  for (const auto& line : cells)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool last = i + 1 == line.size();
      text += line[i] + (last ? "\n" : std::string(widths[i] - line[i].size() + 2, ' '));
    }
  }
  return text;
}

}  // namespace kv
