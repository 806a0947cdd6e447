// elf-prepare tokenizer, corpus, pairs.
#include <iostream>
#include <memory>
#include <optional>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/data/prepare.h"
#include "elf/text/tokenizer_training.h"
#include "prepare.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

// Options that only the command line knows; the rest is written straight into the options of the work.
struct TextFlags {
  std::string field, invalid_utf8 = "error";
  int64_t tsv_column = 0;
  bool json = false;
};

void add_text_flags(Command& command, TextFlags& flags) {
  command
      .add_option("--invalid-utf8", flags.invalid_utf8,
                  "Records with invalid UTF-8 or NUL: error, replace (U+FFFD) or drop (counted)")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "One JSON object on standard output instead of the report");
}

void add_input(Command& command, RecordSource& source, TextFlags& flags) {
  command
      .add_option("--input", source.files,
                  "Text (one record a line) or JSONL files, plain or .gz, also as 'a pattern*'; - = standard "
                  "input")
      ->required();
  command.add_option("--field", flags.field,
                     "JSONL: key of the text, nested as a.b (default for .jsonl files: text)");
  command
      .add_option("--tsv-column", flags.tsv_column,
                  "The files are tables: take this tab-separated column, from 1")
      ->positive();
}

void resolve(RecordSource& source, const TextFlags& flags) {
  if (!flags.field.empty() && flags.tsv_column > 0)
    usage_error("--field is for JSONL, --tsv-column for tables");
  if (!flags.field.empty()) source.fields = {flags.field};
  if (flags.tsv_column > 0) {
    source.format = RecordFormat::kTsv;
    source.columns = 0;
    source.take = {flags.tsv_column - 1};
  }
  source.files = expand_files(source.files);
  source.bad_text = parse_bad_text(flags.invalid_utf8);
}

void print(const PrepareReport& report, bool json) {
  if (json) {
    std::cout << report_json(report).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    std::cout << report_text(report);
  }
}

struct PrepareFlags : TextFlags {
  std::string tokenizer, long_text;
  std::optional<uint64_t> shuffle_seed;
};

// The texts are looked at with the other options.
void refuse_overwriting_tokenizer(const PrepareOptions& o, const std::string& tokenizer) {
  for (const auto& out : {o.out, o.valid_out, o.drop_report}) refuse_overwriting(out, {tokenizer});
}

void add_prepare_options(Command& command, PrepareOptions& o, PrepareFlags& flags) {
  command.add_option("--tokenizer", flags.tokenizer, "Folder of elf-prepare tokenizer, or a spiece.model")
      ->required();
  command.add_option("--max-length", o.max_length, "Tokens of a row at most (L)")->required();
  command.add_option("--out", o.out, "HDF5 dataset to write")->required();
  command.add_option("--valid-fraction", o.valid_fraction,
                     "Share of the records held out, chosen by a hash of the text");
  command.add_option("--valid-out", o.valid_out, "HDF5 dataset of the held-out records");
  command.add_option("--max-records", o.max_records, "Read so many records only")->not_negative();
  command
      .add_option("--long", flags.long_text,
                  "Texts longer than a row: split (documents only), truncate or drop")
      ->capture_default_str();
  command.add_flag("--eos,!--no-eos", o.eos,
                   cat("An EOS after each text (default: ", o.eos ? "yes" : "no", ")"));
  command.add_option("--shuffle-seed", flags.shuffle_seed,
                     "Put the records in a random order that depends on this number only");
  command.add_flag("--append", o.append,
                   "Keep the rows that --out (and --valid-out) hold, before the new ones");
  command.add_option("--drop-report", o.drop_report,
                     "File to write: place and reason of every dropped record");
  command.add_flag("--allow-unk", o.allow_unknown, "Go on although more than 5 % of the tokens are unknown");
  add_text_flags(command, flags);
}

}  // namespace

void add_tokenizer_command(Command& app, Commands& commands) {
  struct State : TextFlags {
    TokenizerTraining training;
    std::string out;
    bool dummy_prefix = true, extra_spaces = false;
  };
  const auto state = std::make_shared<State>();
  TokenizerTraining& t = state->training;
  Command& command =
      *app.add_subcommand("tokenizer", "Train a SentencePiece tokenizer with T5's ids (pad 0, eos 1, unk 2)");
  add_input(command, t.source, *state);
  command.add_option("--vocab-size", t.vocab_size, "Pieces, the three special ones included")->required();
  command
      .add_option("--model-type", t.model_type,
                  "unigram, bpe, word (a piece per blank-separated word) or char")
      ->capture_default_str();
  command.add_option("--extra-ids", t.extra_ids, "Sentinels <extra_id_N> after the pieces")
      ->capture_default_str();
  command.add_option(
      "--normalization", t.normalization,
      "nmt_nfkc (default), nfkc, nmt_nfkc_cf, nfkc_cf (case folded) or identity (default of word and char)");
  command.add_option("--character-coverage", t.character_coverage,
                     "Share of the characters kept; 0 = 0.9995, for word and char 1");
  Option* prefix = command.add_flag("--dummy-prefix,!--no-dummy-prefix", state->dummy_prefix,
                                    "A blank before the text (default: yes, for char no)");
  Option* spaces = command.add_flag("--keep-extra-spaces,!--no-keep-extra-spaces", state->extra_spaces,
                                    "Keep runs of blanks and blanks at the ends (default: no, for char yes)");
  command.add_flag("--byte-fallback", t.byte_fallback,
                   "Byte pieces for characters without a piece (unigram, bpe)");
  command.add_flag("--soft-vocab-limit", t.soft_vocab_limit,
                   "Fewer pieces than --vocab-size are fine (always so for word and char)");
  command.add_option("--max-records", t.max_records, "Train on an even sample of so many records; 0 = all")
      ->capture_default_str();
  command.add_option("--out", state->out, "Folder to write: spiece.model and tokenizer_config.json")
      ->required();
  add_text_flags(command, *state);
  with_examples(
      command,
      "  elf-prepare tokenizer --input train.txt --vocab-size 8000 --out tok\n"
      "  elf-prepare tokenizer --input words.txt --vocab-size 2003 --model-type word --extra-ids 0 --out "
      "tok\n"
      "  elf-prepare tokenizer --input a.txt b.txt --vocab-size 200 --model-type char --extra-ids 0 --out "
      "tok");
  commands["tokenizer"] = [state, prefix, spaces](const CommonOptions&) {
    TokenizerTraining& training = state->training;
    resolve(training.source, *state);
    if (prefix->count() > 0) training.add_dummy_prefix = state->dummy_prefix;
    if (spaces->count() > 0) training.keep_extra_spaces = state->extra_spaces;
    log_info(cat("training a ", training.model_type, " tokenizer of ", training.vocab_size, " pieces"));
    const TrainedTokenizer trained = train_tokenizer(training);
    trained.tokenizer.save(state->out);
    const TrainingCounts& counts = trained.counts;
    const Json report = {{"tokenizer", state->out},
                         {"pieces", trained.tokenizer.pieces()},
                         {"extra_ids", trained.tokenizer.extra_ids()},
                         {"vocabulary", trained.tokenizer.size()},
                         {"hash", trained.tokenizer.hash()},
                         {"records", counts.records_read},
                         {"records_used", counts.records_used},
                         {"skipped", counts.skipped}};
    if (state->json) {
      std::cout << report.dump() << "\n";
      return;
    }
    std::cout << "records read " << counts.records_read << ", used " << counts.records_used
              << ", blank or dropped " << counts.skipped << "\n"
              << state->out << ": " << trained.tokenizer.pieces() << " pieces + "
              << trained.tokenizer.extra_ids() << " extra ids, " << trained.tokenizer.hash() << "\n";
  };
}

void add_corpus_command(Command& app, Commands& commands) {
  struct State : PrepareFlags {
    CorpusOptions options;
  };
  const auto state = std::make_shared<State>();
  state->long_text = "split";
  Command& command = *app.add_subcommand("corpus", "Documents to a dataset of rows of tokens");
  add_input(command, state->options.source, *state);
  add_prepare_options(command, state->options, *state);
  command.add_flag("--pack", state->options.pack,
                   "Documents one after the other, EOS between them, cut into full rows");
  with_examples(command,
                "  elf-prepare corpus --input train.txt --tokenizer tok --max-length 128 --out train.h5\n"
                "  elf-prepare corpus --input a.jsonl.gz b.jsonl.gz --field text --tokenizer tok "
                "--max-length 1024 --pack --out train.h5\n"
                "  elf-prepare corpus --input all.txt --tokenizer tok --max-length 64 --long drop \\\n"
                "      --out train.h5 --valid-fraction 0.02 --valid-out valid.h5");
  commands["corpus"] = [state](const CommonOptions& common) {
    CorpusOptions& options = state->options;
    resolve(options.source, *state);
    options.long_text = parse_long_text(state->long_text);
    options.shuffle_seed = state->shuffle_seed;
    options.threads = common.threads;
    refuse_overwriting_tokenizer(options, state->tokenizer);
    print(prepare_corpus(options, SentencePieceTokenizer::load(state->tokenizer)), state->json);
  };
}

namespace {

struct PairFlags : PrepareFlags {
  PairsOptions options;
  std::vector<std::string> source, target, tsv, jsonl;
  std::string source_field = "source", target_field = "target", split_by = "source";
  std::vector<int64_t> columns;
};

// One of --source with --target, --tsv, --jsonl.
void resolve_sources(PairFlags& flags) {
  const int ways = (flags.source.empty() && flags.target.empty() ? 0 : 1) + (flags.tsv.empty() ? 0 : 1) +
                   (flags.jsonl.empty() ? 0 : 1);
  if (ways != 1 || flags.source.empty() != flags.target.empty()) {
    usage_error("pairs come from --source F --target F, or --tsv F, or --jsonl F; give one of the three");
  }
  PairsOptions& o = flags.options;
  if (!flags.tsv.empty()) {
    o.source = {.files = expand_files(flags.tsv), .format = RecordFormat::kTsv, .columns = 2};
    if (!flags.columns.empty()) {
      o.source.columns = 0;
      for (const int64_t column : flags.columns) o.source.take.push_back(column - 1);
    }
  } else if (!flags.jsonl.empty()) {
    o.source = {.files = expand_files(flags.jsonl),
                .format = RecordFormat::kJsonl,
                .fields = {flags.source_field, flags.target_field}};
  } else {
    o.source = {.files = expand_files(flags.source), .format = RecordFormat::kLines};
    o.target = RecordSource{.files = expand_files(flags.target), .format = RecordFormat::kLines};
    o.target->bad_text = parse_bad_text(flags.invalid_utf8);
  }
  o.source.bad_text = parse_bad_text(flags.invalid_utf8);
  if (!flags.columns.empty() && flags.tsv.empty()) usage_error("--columns is for --tsv");
  if (flags.split_by != "source" && flags.split_by != "target")
    usage_error("--split-by '", flags.split_by, "' is not one of source, target");
  o.split_by_target = flags.split_by == "target";
}

}  // namespace

void add_pairs_command(Command& app, Commands& commands) {
  const auto flags = std::make_shared<PairFlags>();
  flags->long_text = "truncate";
  flags->options.eos = false;
  Command& command =
      *app.add_subcommand("pairs", "Source-target pairs to a dataset: the source is the condition");
  command.add_option("--source", flags->source, "Text files, one source a line, plain or .gz");
  command.add_option("--target", flags->target,
                     "Text files, one target a line: line i belongs to line i of --source");
  command.add_option("--tsv", flags->tsv, "Files of two tab-separated columns, or of more with --columns");
  command.add_option("--columns", flags->columns, "--tsv: columns of source and target, from 1: 2 4")
      ->expected(2)
      ->positive();
  command.add_option("--jsonl", flags->jsonl, "JSONL files");
  command.add_option("--source-field", flags->source_field, "JSONL: key of the source, nested as a.b")
      ->capture_default_str();
  command.add_option("--target-field", flags->target_field, "JSONL: key of the target")
      ->capture_default_str();
  command
      .add_option("--max-input-length", flags->options.max_input_length,
                  "Tokens of a source at most (S); a target has at most L - S")
      ->required();
  command
      .add_option("--split-by", flags->split_by, "Text whose hash decides what is held out: source or target")
      ->capture_default_str();
  add_prepare_options(command, flags->options, *flags);
  with_examples(command,
                "  elf-prepare pairs --source train.de --target train.en --tokenizer tok --max-input-length "
                "64 --max-length 128 --out train.h5\n"
                "  elf-prepare pairs --jsonl data.jsonl --source-field document --target-field summary "
                "--tokenizer tok \\\n"
                "      --max-input-length 1024 --max-length 1088 --out train.h5 --valid-fraction 0.01 "
                "--valid-out valid.h5");
  commands["pairs"] = [flags](const CommonOptions& common) {
    resolve_sources(*flags);
    flags->options.long_text = parse_long_text(flags->long_text);
    flags->options.shuffle_seed = flags->shuffle_seed;
    flags->options.threads = common.threads;
    refuse_overwriting_tokenizer(flags->options, flags->tokenizer);
    print(prepare_pairs(flags->options, SentencePieceTokenizer::load(flags->tokenizer)), flags->json);
  };
}

}  // namespace elf::app
