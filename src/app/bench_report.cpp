// elf-bench report: sweeps as Markdown, CSV and one page of HTML.
#include <algorithm>
#include <memory>

#include "ablation_report.h"
#include "bench.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> folders;
  std::string out;
  bool svg = false;
};

// The folder itself, or those in it that hold a sweep.
std::vector<fs::path> sweeps_in(const std::string& folder) {
  if (!fs::is_directory(folder)) usage_error(folder, ": no such folder");
  if (fs::exists(fs::path(folder) / "sweep.json")) return {folder};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "sweep.json")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  if (found.empty()) usage_error(folder, ": holds no sweep of elf-bench ablation");
  return found;
}

int run_report(const Options& o) {
  const fs::path out = o.out;
  if (!o.out.empty() && out.extension() != ".html" && out.extension() != ".md" && out.extension() != ".csv")
    usage_error("--out ", o.out, ": expected a name that ends in .html, .md or .csv");
  if (o.svg && o.out.empty()) usage_error("--svg: the pictures lie beside --out; give one");
  std::vector<SweepReport> reports;
  for (const std::string& folder : o.folders) {
    for (const fs::path& sweep : sweeps_in(folder)) reports.push_back(read_sweep_report(sweep));
  }
  if (o.out.empty()) {
    write_result("", report_markdown(reports, false));
    return 0;
  }
  for (const SweepReport& report : reports) {
    if (!o.svg) break;
    for (const ReportPicture& picture : report_pictures(report))
      write_file(out.parent_path() / cat(report.name, "-", picture.name, ".svg"), picture.svg);
  }
  // All three, whichever was named: one command makes what people read and what programs read.
  write_file(fs::path(out).replace_extension(".html"), report_html(reports));
  write_file(fs::path(out).replace_extension(".md"), report_markdown(reports, o.svg));
  write_file(fs::path(out).replace_extension(".csv"), report_csv(reports));
  log_info(
      cat(fs::path(out).replace_extension(".html").string(), ", .md and .csv: ", reports.size(), " sweeps"));
  return 0;
}

}  // namespace

void add_report_command(Command& app, BenchCommands& commands) {
  Command* command = app.add_subcommand(
      "report", "Sweeps of elf-bench ablation as tables and pictures, the published rows beside ours");
  const auto o = std::make_shared<Options>();
  command->add_option("FOLDER", o->folders, "OUT of elf-bench ablation, or OUT/NAME of one sweep")
      ->required();
  command->add_option(
      "--out", o->out,
      "report.html: writes it, report.md and report.csv; without it the Markdown goes to stdout");
  command->add_flag("--svg", o->svg,
                    "Also the pictures as files beside --out, which the Markdown then shows");
  with_examples(*command,
                "  elf-bench report runs/ablations --out report.html\n"
                "  elf-bench report runs/ablations/optimiser runs/ablations/scale");
  commands["report"] = [o](const CommonOptions&) { return run_report(*o); };
}

}  // namespace elf::app
