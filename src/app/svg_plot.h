// Points and lines as a picture of its own (SVG): nothing in it comes from elsewhere.
#pragma once

#include <string>
#include <vector>

namespace elf::app {

struct PlotPoint {
  double x = 0, y = 0;
  double x_error = 0, y_error = 0;  // half lengths of bars; 0: none
  std::string label, tip;           // written beside it; shown under the pointer. Empty: none
  std::string kind = "dot";         // class of the mark: dot | red | published, or one of Plot::style
};

struct PlotSeries {
  std::string name;  // in the legend; empty: not there
  std::string color = "#1769aa";
  std::vector<PlotPoint> points;
  bool line = true, dashed = false, marks = true;
};

struct Plot {
  std::string title, x_title, y_title;
  bool log_x = false, log_y = false;  // all values above 0
  double width = 760, height = 480;
  std::string style;  // further CSS rules
  std::vector<PlotSeries> series;
};

// Points that are not finite (or not above 0 on a logarithmic axis) are left out; a plot without any is empty
// text.
std::string svg_of(Plot plot);

// For the inside of XML and HTML.
std::string xml_text(const std::string& text);

// Colours that tell series apart, also for most who do not see all colours (Okabe and Ito, 2008).
const std::string& series_color(size_t index);

}  // namespace elf::app
