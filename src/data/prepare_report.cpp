#include <iomanip>
#include <sstream>

#include "elf/base/error.h"
#include "elf/data/prepare.h"

namespace elf {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

double share_of(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double mean_length(const DatasetInfo& info) {
  return share_of(info.tokens, info.rows);
}

std::string file_line(const DatasetInfo& info) {
  char mean[32];
  std::snprintf(mean, sizeof mean, "%.1f", mean_length(info));
  return cat(info.path.string(), ": ", info.rows, " rows, ", info.tokens, " tokens, mean length ", mean,
             ", longest ", info.longest_row, " of ", info.max_length);
}

Json file_json(const DatasetInfo& info) {
  return {{"path", info.path.string()},
          {"rows", info.rows},
          {"tokens", info.tokens},
          {"mean_length", mean_length(info)},
          {"longest", info.longest_row},
          {"max_length", info.max_length},
          {"max_input_length", info.max_input_length},
          {"data_hash", info.data_hash}};
}

}  // namespace

std::string report_text(const PrepareReport& r) {
  std::ostringstream out;
  out << "records read " << r.records << ", kept " << r.kept << "\n";
  const auto count = [&](int64_t number, const char* what) {
    if (number > 0) out << "  " << number << " " << what << "\n";
  };
  count(r.blank, r.columns.size() > 1 ? "pairs dropped: an empty side" : "dropped: blank");
  count(r.bad_text, "dropped: invalid UTF-8 or NUL");
  count(r.too_long, "dropped: too long");
  count(r.truncated, "truncated");
  count(r.split, "split into several rows");
  count(r.replaced, "with bad bytes replaced by U+FFFD");
  count(r.line_breaks, "with line breaks turned into blanks");
  for (const auto& [place, reason] : r.dropped) out << "    " << place << ": " << reason << "\n";
  const int64_t all_dropped = r.blank + r.bad_text + r.too_long;
  if (all_dropped > static_cast<int64_t>(r.dropped.size()))
    out << "    ... and " << all_dropped - r.dropped.size() << " more\n";
  for (const ColumnReport& c : r.columns) {
    out << "column '" << c.name << "': " << c.tokens << " tokens, unknown " << percent(c.unknown_rate(), 1)
        << ", longest " << c.longest << ", mean " << std::fixed << std::setprecision(1)
        << share_of(c.tokens, c.texts) << ", not coming back exactly "
        << percent(1 - share_of(c.round_trips, c.texts), 2) << "\n";
    if (c.uncovered.empty()) continue;
    out << "  commonest uncovered:";
    for (const auto& [thing, number] : c.uncovered) out << " '" << thing << "' (" << number << ")";
    out << "\n";
  }
  out << file_line(r.train) << "\n";
  if (r.rows_before > 0) out << "  " << r.rows_before << " of the rows were there before\n";
  if (r.valid) out << file_line(*r.valid) << "\n";
  return out.str();
}

Json report_json(const PrepareReport& r) {
  Json columns = Json::array(), dropped = Json::array();
  for (const ColumnReport& c : r.columns) {
    Json uncovered = Json::object();
    for (const auto& [thing, number] : c.uncovered) uncovered[thing] = number;
    columns.push_back({{"name", c.name},
                       {"texts", c.texts},
                       {"tokens", c.tokens},
                       {"unknown_rate", c.unknown_rate()},
                       {"longest", c.longest},
                       {"mean_length", share_of(c.tokens, c.texts)},
                       {"round_trip_share", share_of(c.round_trips, c.texts)},
                       {"uncovered", uncovered}});
  }
  for (const auto& [place, reason] : r.dropped) dropped.push_back({{"place", place}, {"reason", reason}});
  Json json = {{"records", r.records},
               {"kept", r.kept},
               {"dropped", {{"blank", r.blank}, {"bad_text", r.bad_text}, {"too_long", r.too_long}}},
               {"truncated", r.truncated},
               {"split", r.split},
               {"replaced", r.replaced},
               {"line_breaks", r.line_breaks},
               {"dropped_records", dropped},
               {"columns", columns},
               {"tokenizer_hash", r.train.tokenizer_hash},
               {"vocabulary", r.train.vocab_size},
               {"rows_before", r.rows_before},
               {"train", file_json(r.train)}};
  if (r.valid) json["valid"] = file_json(*r.valid);
  return json;
}

}  // namespace elf
