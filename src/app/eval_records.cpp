#include "eval_records.h"

#include <rapidjson/document.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <filesystem>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "record_schema.h"

namespace elf::app {
namespace {

template <class Pointer>
std::string text_of(const Pointer& pointer) {
  rapidjson::StringBuffer buffer;
  pointer.Stringify(buffer);
  return buffer.GetString();
}

const OrderedJson& schema() {
  static const OrderedJson parsed = parse_json_or_throw<OrderedJson>(kRecordSchema);
  return parsed;
}

// The keys that a part of the schema asks for and a part of the record lacks.
std::string missing_keys(const OrderedJson& part, const OrderedJson& rule) {
  std::string missing;
  for (const auto& key : rule.at("required")) {
    if (!part.contains(key.get<std::string>()))
      missing += (missing.empty() ? "'" : ", '") + key.get<std::string>() + "'";
  }
  return missing;
}

std::string name_of_path(const std::string& path) {
  const std::filesystem::path whole(path);
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

void add_figures(EvalRecord& record, const OrderedJson& from, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (from.contains(name) && from.at(name).is_number())
      record.figures[name] = {from.at(name).get<double>(), {}};
  }
}

void read_bleu(EvalRecord& record) {
  const OrderedJson& json = record.json;
  record.figures["bleu"] = {json.at("cased").get<double>(), {}};
  record.figures["bleu_lower_cased"] = {json.at("lower_cased").get<double>(), {}};
  for (const char* name : {"chrf", "chrf++", "ter"}) {
    if (json.contains(name)) record.figures[name] = {json.at(name).at("score").get<double>(), {}};
  }
}

void read_rouge(EvalRecord& record) {
  for (const char* name : {"rouge1", "rouge2", "rougeL", "rougeLsum"})
    record.figures[name] = {100 * record.json.at(name).at("fmeasure").get<double>(), {}};
}

void read_texts_figures(EvalRecord& record) {
  const OrderedJson& json = record.json;
  add_figures(
      record, json,
      {"ppl", "entropy", "rep4", "mean_length", "blank", "skipped_blank", "exact_copies", "new_trigrams"});
  if (auto blank = record.figures.extract("skipped_blank")) {
    blank.key() = "blank";
    record.figures.insert(std::move(blank));
  }
  for (int n = 1; n <= 4; ++n)
    record.figures[cat("distinct", n)] = {json.at("distinct").at(static_cast<size_t>(n - 1)).get<double>(),
                                          {}};
  if (json.contains("mauve") && json.at("mauve").is_object())
    add_figures(record, json.at("mauve"), {"score"});
  if (const auto mauve = record.figures.extract("score")) record.figures["mauve"] = mauve.mapped();
}

void read_run(EvalRecord& record) {
  const OrderedJson& json = record.json;
  for (const auto& [name, figure] : json.at("figures").items()) {
    if (!figure.at("mean").is_number()) continue;
    RecordFigure& read = record.figures[name] = {figure.at("mean").get<double>(), {}};
    if (figure.at("standard_error").is_number())
      read.standard_error = figure.at("standard_error").get<double>();
  }
  record.label =
      name_of_path(json.at("model").at("path").get<std::string>()) + " " + json.at("name").get<std::string>();
}

EvalRecord record_of(const std::string& place, OrderedJson json) {
  if (const std::string fault = record_fault(json); !fault.empty())
    usage_error(place, ": no record of elf-eval: ", fault);
  EvalRecord record{place, std::move(json), "", "", {}, false};
  record.command = record.json.at("command").get<std::string>();
  if (record.json.contains("inputs"))
    record.label = name_of_path(record.json["inputs"][0]["file"].get<std::string>());
  if (record.command == "bleu") read_bleu(record);
  if (record.command == "rouge") read_rouge(record);
  if (record.command == "match") add_figures(record, record.json, {"exact", "cer"});
  if (record.command == "ngram") add_figures(record, record.json, {"perplexity"});
  if (record.command == "diversity" || record.command == "genppl") read_texts_figures(record);
  if (record.command == "run") read_run(record);
  record.degenerate = record.json.value("degenerate", false);
  return record;
}

}  // namespace

std::string record_fault(const OrderedJson& record) {
  if (!record.is_object()) return cat("a JSON ", record.type_name(), ", expected an object");
  const std::string command = text_in(record, "command");
  const OrderedJson& definitions = schema().at("definitions");
  if (command.empty()) return "key 'command' is missing";
  if (!definitions.contains(command) ||
      !definitions.at(command).value("required", OrderedJson::array()).size())
    return "command '" + command + "' is not known";
  OrderedJson root = definitions.at(command);
  root["definitions"] = definitions;
  rapidjson::Document rules, document;
  rules.Parse(root.dump().c_str());
  document.Parse(record.dump().c_str());
  const rapidjson::SchemaDocument compiled(rules);
  rapidjson::SchemaValidator validator(compiled);
  if (document.Accept(validator)) return "";
  const std::string rule = validator.GetInvalidSchemaKeyword(),
                    where = text_of(validator.GetInvalidDocumentPointer());
  if (rule != "required") return cat(where, ": breaks the rule '", rule, "' of docs/record.schema.json");
  OrderedJson asked = root.at(OrderedJson::json_pointer(text_of(validator.GetInvalidSchemaPointer())));
  while (asked.contains("$ref")) {
    const std::string target = asked.at("$ref").get<std::string>().substr(1);  // without the '#'
    asked = root.at(OrderedJson::json_pointer(target));
  }
  return cat("missing in '", where.empty() ? "/" : where,
             "': ", missing_keys(record.at(OrderedJson::json_pointer(where)), asked));
}

std::vector<EvalRecord> read_eval_records(const std::string& file) {
  const std::string content = read_file(file);
  const OrderedJson whole = parse_json<OrderedJson>(content);
  if (!whole.is_discarded()) return {record_of(file, whole)};
  std::vector<EvalRecord> records;
  int64_t line = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string text = content.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (text.empty()) continue;
    const OrderedJson json = parse_json<OrderedJson>(text);
    if (json.is_discarded())
      usage_error(file, ":", line, ": no JSON; expected a record of elf-eval (--json)");
    records.push_back(record_of(cat(file, ":", line), json));
  }
  return records;
}

}  // namespace elf::app
