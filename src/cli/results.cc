#include "cli/results.h"

#include <algorithm>

#include "arrays/npy.h"
#include "arrays/npz.h"
#include "base/fail.h"
#include "base/try.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "text/print.h"

namespace hloom::cli {
namespace {

constexpr std::int64_t kPrinted = 1000;  // elements of an array that are printed in full

Expected<> write_arrays(const std::string& path, const std::vector<hlo::Literal>& values) {
  const arrays::Npz npz = arrays::npz_of(values, "out");
  if (!path.ends_with(".npy")) return arrays::write_npz(path, npz);
  if (npz.names().size() != 1)
    return fail(Code::InvalidArgument, path, ": an .npy file holds one array, the program gives ", npz.names().size());
  return arrays::write_npy(path, *npz.find(npz.names()[0]));
}

Expected<> write_results(const Options& options, const Results& results) {
  const auto devices = static_cast<std::int64_t>(results.size());
  for (std::int64_t k = 0; k < devices; ++k) {
    const std::string path = devices == 1 ? options.output : device_path(options.output, k);
    TRY(uninterrupted([&] { return write_arrays(path, results[static_cast<std::size_t>(k)]); }));
  }
  return {};
}

std::string text_of(const hlo::Literal& value) {
  if (!value.shape().is_array()) return "";  // a token, whose shape says it all
  text::PrintOptions print;
  print.large_constants = value.num_elements() <= kPrinted;
  return text::print_literal(value, print);
}

Expected<> print_results(const Results& results) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    for (std::size_t i = 0; i < results[k].size(); ++i) {
      const hlo::Literal& value = results[k][i];
      std::string line = results.size() == 1 ? "" : "dev" + std::to_string(k) + ".";
      line.append("out").append(std::to_string(i)).append(" = ").append(to_string(value.shape(), false)).append(" ");
      TRY(write_output(line + text_of(value) + "\n"));
    }
  }
  return {};
}

/// What is compared with, for one device.
struct Expectation {
  std::vector<hlo::Literal> values;
  std::vector<arrays::Tolerance> tolerances;
};

// Values of the file in the shapes of what was computed.
Expected<std::vector<hlo::Literal>> read_expected(const std::string& path, const std::vector<hlo::Literal>& got) {
  arrays::Npz npz;
  if (path.ends_with(".npy"))
    npz.add("out0", TRY(arrays::read_npy(path)));
  else
    npz = TRY(arrays::read_npz(path));
  std::vector<Shape> shapes;
  for (const hlo::Literal& value : got)
    if (value.shape().is_array()) shapes.push_back(value.shape());
  const std::vector<hlo::Literal> read = TRY(arrays::literals(npz, "out", shapes, path));
  std::vector<hlo::Literal> values;
  std::size_t next = 0;
  for (const hlo::Literal& value : got) values.push_back(value.shape().is_array() ? read[next++] : value);
  return values;
}

// For all results of a larger program that has more of them than the folder has tolerances.
arrays::Tolerance loosest(const std::vector<arrays::Tolerance>& tolerances) {
  arrays::Tolerance loosest = arrays::Tolerance::close(0, 0);
  for (const arrays::Tolerance& t : tolerances) {
    loosest.rtol = std::max(loosest.rtol, t.rtol);
    loosest.atol = std::max(loosest.atol, t.atol);
  }
  return loosest;
}

Expected<Expectation> expectation(const Options& options, const Source& source, const Results& results, std::size_t k) {
  Expectation want;
  if (source.folder) want.tolerances = source.folder->tolerances;
  if (source.bench_scale && want.tolerances.size() != results[k].size()) want.tolerances = {loosest(want.tolerances)};
  if (options.rtol || options.atol || !source.folder)
    want.tolerances = {arrays::Tolerance::close(options.rtol.value_or(0), options.atol.value_or(0))};
  if (options.expect.empty()) {
    want.values = source.folder->expected[std::min(k, source.folder->expected.size() - 1)];
  } else {
    const std::string path =
        file_of_device(options.expect, static_cast<std::int64_t>(k), static_cast<std::int64_t>(results.size()));
    want.values = TRY(read_expected(path, results[k]));
  }
  if (want.tolerances.size() != 1 && want.tolerances.size() != results[k].size())
    return fail(Code::InvalidArgument, source.path, ": the folder has ", want.tolerances.size(),
                " tolerances, the program gives ", results[k].size(), " results");
  return want;
}

Expected<int> compare(const Options& options, const Source& source, const Results& results) {
  int status = kGood;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Expectation want = TRY(expectation(options, source, results, k));
    const auto problem = arrays::compare_results(results[k], want.values, want.tolerances);
    if (!problem) continue;
    const std::string device = results.size() == 1 ? "" : "device " + std::to_string(k) + ": ";
    say(source.path + ": " + device + *problem);
    status = kBad;
  }
  if (status == kGood)
    say(source.path + ": " + std::to_string(results[0].size()) +
        (results[0].size() == 1 ? " result is" : " results are") + " as expected" +
        (results.size() == 1 ? "" : " on each of " + std::to_string(results.size()) + " devices"));
  return status;
}

}  // namespace

Expected<int> deliver(const Options& options, const Source& source, const Results& results) {
  if (!options.output.empty()) TRY(write_results(options, results));
  const bool own_values = source.folder && !source.bench_scale && options.inputs.empty() && options.random.empty();
  if (!options.expect.empty() || own_values) return compare(options, source, results);
  if (options.output.empty()) TRY(print_results(results));
  return kGood;
}

}  // namespace hloom::cli
