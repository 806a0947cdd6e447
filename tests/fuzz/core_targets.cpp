// Readers of the half without torch.
#include <array>
#include <string>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/manifest.h"
#include "elf/config/published_config.h"
#include "elf/config/run_config.h"
#include "elf/config/schedules.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/chrf.h"
#include "elf/metrics/rouge.h"
#include "elf/metrics/ter.h"
#include "elf/text/gpt2_tokenizer.h"
#include "elf/text/records.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "elf/text/unicode.h"
#include "support/temporary_folder.h"
#include "target.h"

namespace elf::fuzz {
namespace {

// Where a reader wants a file.
const test::TemporaryFolder& folder() {
  static const test::TemporaryFolder folder;
  return folder;
}

// The first byte chooses among `count` ways; the others are what is read.
size_t choice(std::string_view& bytes, size_t count) {
  if (bytes.empty()) return 0;
  const size_t chosen = static_cast<unsigned char>(bytes.front()) % count;
  bytes.remove_prefix(1);
  return chosen;
}

// `base:` may name any file of the machine, devices without end among them.
bool names_devices(std::string_view bytes) {
  return bytes.find("dev") != std::string_view::npos || bytes.find("proc") != std::string_view::npos;
}

void config(std::string_view bytes) {
  if (names_devices(bytes)) return;
  const RunConfig config = parse_run_config(std::string(bytes), "fuzz.yaml", folder().path());
  if (parse_run_config(to_yaml(config), "dump.yaml", "/") != config)
    broken_promise("what to_yaml wrote is another configuration");
}

void published_config(std::string_view bytes) {
  if (names_devices(bytes)) return;
  const char* name = choice(bytes, 2) == 0 ? "c.yml" : "c.json";
  load_published_config(folder().write(name, std::string(bytes)));
}

void manifest(std::string_view bytes) {
  folder().write("part", "the content of a part");
  folder().write(kManifestName, std::string(bytes));
  manifest_problem(folder().path());
}

void schedules(std::string_view bytes) {
  if (choice(bytes, 2) == 0) {
    const ScaleSchedule schedule = ScaleSchedule::parse(bytes, "fuzz");
    for (const double t : {0.0, 0.3, 1.0}) schedule.at(t);
  } else {
    parse_times(bytes, "fuzz");
  }
}

// Formats, ways with bad text, and gzip (which is known by its content).
void records(std::string_view bytes) {
  RecordSource source;
  source.format =
      std::array{RecordFormat::kLines, RecordFormat::kTsv, RecordFormat::kJsonl}[choice(bytes, 3)];
  source.bad_text = std::array{BadText::kError, BadText::kReplace, BadText::kDrop}[choice(bytes, 3)];
  if (source.format == RecordFormat::kTsv) source.columns = static_cast<int64_t>(choice(bytes, 3));
  source.files = {folder().write("records", std::string(bytes))};
  RecordReader reader(source);
  for (Record record; reader.next(record);) {
    for (const std::string& column : record.columns) {
      if (find_bad_text(column) != std::string::npos) broken_promise("bad text in a record");
    }
  }
}

constexpr std::array<std::string_view, 4> kTexts = {"", "the <extra_id_0> of  a \xC3\xA4\xE2\x82\xAC",
                                                    "\xE2\x96\x81\n\t<pad></s>", "aaaaaaaaaaaaaaaaaaaaa"};

void use(const SentencePieceTokenizer& tokenizer) {
  for (const std::string_view text : kTexts) {
    const std::vector<int32_t> ids = tokenizer.encode(text, /*add_eos=*/true);
    for (const int32_t id : ids) {
      if (id < 0 || id >= tokenizer.size()) broken_promise("an id that the tokenizer does not have");
    }
    const std::string decoded = tokenizer.decode(ids);
    if (tokenizer.decodes_to(ids, decoded) != true) broken_promise("decodes_to and decode differ");
    tokenizer.decode_plain(ids);
  }
  for (int64_t id = 0; id < std::min<int64_t>(tokenizer.size(), 8); ++id)
    tokenizer.id_of(tokenizer.piece(id));
}

void sentencepiece(std::string_view bytes) {
  use(SentencePieceTokenizer::from_bytes(std::string(bytes), 3, "fuzz.model"));
}

std::string corpus_file(const char* name) {
  return read_file(std::filesystem::path(ELF_TEST_DIR) / "fuzz/corpus" / name);
}

void tokenizer_config(std::string_view bytes) {
  static const std::string model = corpus_file("sentencepiece/char.model");
  folder().write("spiece.model", model);
  folder().write("tokenizer_config.json", std::string(bytes));
  use(SentencePieceTokenizer::load(folder() / "spiece.model"));
}

// vocab.json, a line of ----, merges.txt.
void gpt2_tables(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n----\n";
  const size_t at = bytes.find(kBetween);
  folder().write("vocab.json", std::string(bytes.substr(0, at)));
  folder().write("merges.txt",
                 at == std::string_view::npos ? "" : std::string(bytes.substr(at + kBetween.size())));
  const Gpt2Tokenizer tokenizer = Gpt2Tokenizer::load(folder().path());
  for (const std::string_view text : kTexts) {
    for (const int32_t id : tokenizer.encode(text)) {
      if (id < 0 || id >= tokenizer.size()) broken_promise("an id that the tokenizer does not have");
    }
  }
}

void gpt2_text(std::string_view bytes) {
  static const Gpt2Tokenizer tokenizer =
      Gpt2Tokenizer::load(std::filesystem::path(ELF_TEST_DIR).parent_path() / "data/gpt2");
  const std::string text = replace_bad_text(bytes);
  if (tokenizer.decode(tokenizer.encode(text)) != text) broken_promise("a text does not come back");
}

// Hypothesis, line end, reference: any bytes at all, since scores are of what models and people write.
void scores(std::string_view bytes) {
  if (bytes.size() > 400) return;  // TER takes its time
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::vector<std::string> hypothesis = {std::string(bytes.substr(0, end))};
  const std::string reference(bytes.substr(std::min(end + 1, bytes.size())));
  const std::vector<ReferenceStream> references = {ReferenceStream{reference}};
  for (const BleuTokenizer tokenizer :
       {BleuTokenizer::k13a, BleuTokenizer::kIntl, BleuTokenizer::kZh, BleuTokenizer::kChar})
    corpus_bleu(hypothesis, references, {.tokenizer = tokenizer, .lowercase = true});
  corpus_chrf(hypothesis, references, {.word_order = 2});
  corpus_ter(hypothesis, references, {.normalized = true, .asian_support = true});
  rouge(reference, hypothesis[0], {.stemmer = true});
  rouge(reference, hypothesis[0], {.tokenizer = RougeTokenizer::kUnicode, .split_sentences = true});
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"config", config},
                                          {"published_config", published_config},
                                          {"schedules", schedules},
                                          {"manifest", manifest},
                                          {"records", records},
                                          {"sentencepiece", sentencepiece},
                                          {"tokenizer_config", tokenizer_config},
                                          {"gpt2_tables", gpt2_tables},
                                          {"gpt2_text", gpt2_text},
                                          {"scores", scores}};
  return all;
}

}  // namespace elf::fuzz
