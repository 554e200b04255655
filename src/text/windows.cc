// window={size=3x3 pad=1_1x1_1}, padding=0_0_1x-1_3_0, dim_labels=b01f_01io->b01f.
#include <algorithm>

#include "text/attribute_values.h"
#include "text/number.h"

namespace hloom::text {

using hlo::ConvolutionDims;
using hlo::Dims;
using hlo::PadDim;
using hlo::Window;
using hlo::WindowDim;

namespace {

// Integers with `separator` between them at `p`, which moves on. False if one is missing or too large.
bool scan_integers(const char*& p, const char* end, char separator, std::vector<std::int64_t>& out) {
  for (;;) {
    const WrittenInteger n = scan_integer(p, end);
    if (n.end == p || !n.fits()) return false;
    out.push_back(static_cast<std::int64_t>(n.bits()));
    p = n.end;
    if (p == end || *p != separator) return true;
    ++p;
  }
}

// 3x3, at least `least` each.
std::vector<std::int64_t> read_by(Cursor& c, std::int64_t least) {
  const std::string_view run = c.run("0123456789x-");
  std::vector<std::int64_t> values;
  const char* p = run.data();
  const char* const end = p + run.size();
  if (run.empty()) {
    c.fail_expected("numbers joined by 'x'");
  } else if (!scan_integers(p, end, 'x', values) || p != end) {
    c.fail("H501", run.data(), words("expected numbers joined by 'x', found '", run, "'"));
  } else {
    for (const std::int64_t v : values)
      if (v < least) c.fail("H532", run.data(), words("must be at least ", least, ", not ", v));
  }
  return values;
}

// lo_hi or lo_hi_interior, joined by 'x'.
std::vector<PadDim> read_pads(Cursor& c, bool interior_allowed) {
  const std::string_view run = c.run("0123456789x_-");
  std::vector<PadDim> dims;
  const char* p = run.data();
  const char* const end = p + run.size();
  while (p != end) {
    std::vector<std::int64_t> parts;
    if (!scan_integers(p, end, '_', parts) || parts.size() < 2 || parts.size() > 3 || (p != end && *p != 'x')) {
      c.fail("H501", run.data(), words("expected low_high pairs joined by 'x', found '", run, "'"));
      return {};
    }
    if (parts.size() == 3 && !interior_allowed) {
      c.fail("H531", run.data(), "a window's padding has no interior part");
      return {};
    }
    const std::int64_t interior = parts.size() == 3 ? parts[2] : 0;
    if (interior < 0) {
      c.fail("H533", run.data(), words("interior padding is not negative, found ", interior));
      return {};
    }
    dims.push_back({parts[0], parts[1], interior});
    if (p != end && ++p == end) c.fail("H501", run.data(), words("expected a pair after the 'x' of '", run, "'"));
  }
  return dims;
}

class WindowReader {
 public:
  explicit WindowReader(Cursor& c) : c_(c) {}

  Window read() {
    const char* start = c_.at();
    c_.expect('{');
    while (c_.ok() && c_.peek() != '}') {
      read_entry();
      c_.eat(',');
    }
    c_.expect('}');
    if (c_.ok() && seen_ != 0 && (seen_ & 1) == 0) c_.fail("H505", start, "a window needs its size");
    return window_;
  }

 private:
  static constexpr std::string_view kNames[] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};

  void read_entry() {
    const char* at = c_.at();
    const std::string_view key = c_.take_key("a part of a window");
    if (!c_.ok()) return;
    const auto* const found = std::ranges::find(kNames, key);
    if (found == std::end(kNames))
      return c_.fail(
          "H503", at,
          words("'", key, "' is no part of a window", did_you_mean(key, {std::begin(kNames), std::end(kNames)}),
                "; accepted: ", listed({std::begin(kNames), std::end(kNames)})));
    const auto part = found - std::begin(kNames);
    if ((seen_ >> part & 1) != 0) return c_.fail("H502", at, words("'", key, "' comes twice"));
    seen_ |= 1u << part;
    if (part == 2) {
      const std::vector<PadDim> pads = read_pads(c_, false);
      set(at, pads, [](WindowDim& d, const PadDim& p) {
        d.pad_low = p.low;
        d.pad_high = p.high;
      });
      return;
    }
    const char* value = c_.at();
    const std::vector<std::int64_t> values = read_by(c_, part == 0 || part == 5 ? 0 : 1);
    if (part == 5 && std::ranges::any_of(values, [](std::int64_t v) { return v > 1; }))
      return c_.fail("H532", value, "rhs_reversal is 0 or 1");
    static constexpr std::int64_t WindowDim::* kMembers[] = {&WindowDim::size,       &WindowDim::stride,     nullptr,
                                                             &WindowDim::lhs_dilate, &WindowDim::rhs_dilate, nullptr};
    set(at, values, [&](WindowDim& d, std::int64_t v) {
      if (part == 5)
        d.reversal = v != 0;
      else
        d.*kMembers[part] = v;
    });
  }

  template <typename Values, typename Set>
  void set(const char* at, const Values& values, const Set& set_one) {
    if (!c_.ok()) return;
    if (window_.empty()) window_.resize(values.size());
    if (window_.size() != values.size())
      return c_.fail("H530", at, words("has ", values.size(), " dimensions, the window ", window_.size()));
    for (std::size_t d = 0; d < values.size(); ++d) set_one(window_[d], values[d]);
  }

  Cursor& c_;
  Window window_;
  unsigned seen_ = 0;
};

// One part of a window, if some dimension differs from the default.
template <typename Get>
void write_part(std::string& out, std::string_view name, const Window& window, std::int64_t standard, const Get& get) {
  if (standard >= 0 && std::ranges::all_of(window, [&](const WindowDim& d) { return get(d) == standard; })) return;
  out.append(out.back() == '{' ? "" : " ").append(name).append("=");
  for (std::size_t d = 0; d < window.size(); ++d) {
    if (d != 0) out += 'x';
    write_integer(out, get(window[d]));
  }
}

}  // namespace

Window read_window(Cursor& c) { return WindowReader(c).read(); }

void write_window(std::string& out, const Window& w) {
  out += '{';
  if (!w.empty()) {
    write_part(out, "size", w, -1, [](const WindowDim& d) { return d.size; });
    write_part(out, "stride", w, 1, [](const WindowDim& d) { return d.stride; });
    if (std::ranges::any_of(w, [](const WindowDim& d) { return d.pad_low != 0 || d.pad_high != 0; })) {
      out += " pad=";
      for (const WindowDim& d : w) {
        if (&d != &w.front()) out += 'x';
        write_integer(out, d.pad_low);
        out += '_';
        write_integer(out, d.pad_high);
      }
    }
    write_part(out, "lhs_dilate", w, 1, [](const WindowDim& d) { return d.lhs_dilate; });
    write_part(out, "rhs_dilate", w, 1, [](const WindowDim& d) { return d.rhs_dilate; });
    write_part(out, "rhs_reversal", w, 0, [](const WindowDim& d) { return std::int64_t{d.reversal}; });
  }
  out += '}';
}

std::vector<PadDim> read_padding(Cursor& c) { return read_pads(c, true); }

void write_padding(std::string& out, const std::vector<PadDim>& dims) {
  const bool interior = std::ranges::any_of(dims, [](const PadDim& d) { return d.interior != 0; });
  for (const PadDim& d : dims) {
    if (&d != &dims.front()) out += 'x';
    write_integer(out, d.low);
    out += '_';
    write_integer(out, d.high);
    if (!interior) continue;
    out += '_';
    write_integer(out, d.interior);
  }
}

namespace {

// One of the three parts of dim_labels; `first` and `second` are its letters.
class LabelReader {
 public:
  LabelReader(Cursor& c, std::string_view part, char first, char second)
      : c_(c), part_(part), first_(first), second_(second) {}

  void read(std::int64_t& first, std::int64_t& second, Dims& spatial, Dims& unused) {
    for (std::size_t d = 0; d < part_.size() && c_.ok(); ++d) {
      const char label = part_[d];
      const auto place = static_cast<std::int64_t>(d);
      if (label == '?') {
        unused.push_back(place);
      } else if (label == first_) {
        set(first, d);
      } else if (label == second_) {
        set(second, d);
      } else if (chars::is(label, chars::kDigit)) {
        const auto number = static_cast<std::size_t>(label - '0');
        if (spatial.size() <= number) spatial.resize(number + 1, -1);
        set(spatial[number], d);
      } else {
        fail(d, "is no label here");
      }
    }
    const auto missing = std::ranges::find(spatial, -1);
    if (c_.ok() && (first < 0 || second < 0 || missing != spatial.end())) {
      const char label = first < 0    ? first_
                         : second < 0 ? second_
                                      : static_cast<char>('0' + (missing - spatial.begin()));
      c_.fail("H535", part_.data(), words("the label '", std::string_view(&label, 1), "' is missing in '", part_, "'"));
    }
  }

 private:
  void set(std::int64_t& place, std::size_t d) {
    if (place >= 0) return fail(d, "comes twice");
    place = static_cast<std::int64_t>(d);
  }
  void fail(std::size_t d, std::string_view what) {
    c_.fail("H535", part_.data() + d, words("the label '", part_.substr(d, 1), "' ", what));
  }

  Cursor& c_;
  std::string_view part_;
  char first_, second_;
};

}  // namespace

ConvolutionDims read_dim_labels(Cursor& c) {
  ConvolutionDims dims;
  const std::string_view run = c.run("0123456789bfio?_->");
  const std::size_t middle = run.find('_');
  const std::size_t arrow = run.find("->");
  if (middle == std::string_view::npos || arrow == std::string_view::npos || arrow < middle) {
    if (run.empty())
      c.fail_expected("dimension labels as in b01f_01io->b01f");
    else
      c.fail("H501", run.data(), words("expected dimension labels as in b01f_01io->b01f, found '", run, "'"));
    return dims;
  }
  const std::string_view kernel = run.substr(middle + 1, arrow - middle - 1);
  LabelReader(c, run.substr(0, middle), 'b', 'f')
      .read(dims.input_batch, dims.input_feature, dims.input_spatial, dims.input_unused);
  LabelReader(c, kernel, 'i', 'o').read(dims.kernel_input, dims.kernel_output, dims.kernel_spatial, dims.kernel_unused);
  LabelReader(c, run.substr(arrow + 2), 'b', 'f')
      .read(dims.output_batch, dims.output_feature, dims.output_spatial, dims.output_unused);
  if (c.ok() && (dims.input_spatial.size() != dims.kernel_spatial.size() ||
                 dims.input_spatial.size() != dims.output_spatial.size()))
    c.fail("H535", run.data(), "the three parts differ in their spatial dimensions");
  return dims;
}

namespace {

void write_labels(std::string& out, char first_label, std::int64_t first, char second_label, std::int64_t second,
                  const Dims& spatial, const Dims& unused) {
  std::string labels(2 + spatial.size() + unused.size(), '?');
  const auto put = [&](std::int64_t at, char label) {
    if (at >= 0 && at < static_cast<std::int64_t>(labels.size())) labels[static_cast<std::size_t>(at)] = label;
  };
  put(first, first_label);
  put(second, second_label);
  for (std::size_t n = 0; n < spatial.size(); ++n) put(spatial[n], static_cast<char>('0' + n));
  out += labels;
}

}  // namespace

void write_dim_labels(std::string& out, const ConvolutionDims& d) {
  write_labels(out, 'b', d.input_batch, 'f', d.input_feature, d.input_spatial, d.input_unused);
  out += '_';
  write_labels(out, 'i', d.kernel_input, 'o', d.kernel_output, d.kernel_spatial, d.kernel_unused);
  out += "->";
  write_labels(out, 'b', d.output_batch, 'f', d.output_feature, d.output_spatial, d.output_unused);
}

}  // namespace hloom::text
