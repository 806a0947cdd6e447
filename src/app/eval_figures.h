// The figures of records as tables, plots and reports print them: names, digits, units, means.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "eval_records.h"

namespace elf::app {

struct FigureStyle {
  const char *figure, *title;
  int digits;     // after the point
  double factor;  // from the record's unit to the title's: 100 for per cent
};

// All that are known, in the order in which tables show them.
std::span<const FigureStyle> figure_styles();

// Of a figure that is not known: its own name, three digits, as it is.
std::string figure_title(const std::string& figure);
double figure_factor(const std::string& figure);

// "39.31 ± 0.50"; "-" for a mean that is not a number.
std::string figure_text(const std::string& figure, const RecordFigure& value);

// Mean and standard error of the mean over `values`; NaN of none, and the error of fewer than two.
double mean_of(const std::vector<double>& values);
double standard_error(const std::vector<double>& values);

}  // namespace elf::app
