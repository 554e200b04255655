#include "cli/arguments.h"

#include <unistd.h>

#include <filesystem>

#include "arrays/npy.h"
#include "arrays/npz.h"
#include "base/fail.h"
#include "base/try.h"
#include "cli/output.h"
#include "cli/random_values.h"
#include "compiler/dynamic_border.h"
#include "compiler/execute_literals.h"

namespace hloom::cli {
namespace {

constexpr std::int64_t kMaxDevices = 1024;

// Of the arrays among the leaves: tokens have no number.
std::string argument_name(std::size_t number) {
  // Not "arg" + …: GCC 12 warns of what it makes of that.
  return std::string("arg").append(std::to_string(number));
}

Expected<arrays::Npz> read_arrays(const std::string& path) {
  if (!path.ends_with(".npy")) return arrays::read_npz(path);
  arrays::Npz npz;
  npz.add("arg0", TRY(arrays::read_npy(path)));
  return npz;
}

// More arrays than the program takes are most likely another program's.
Expected<> refuse_unknown(const arrays::Npz& npz, std::size_t count, const std::string& path) {
  for (const std::string& name : npz.names()) {
    bool known = false;
    for (std::size_t i = 0; i < count && !known; ++i) known = name == argument_name(i);
    if (!known)
      return fail(Code::InvalidArgument, path, ": has an array ", name, "; the program takes ", count,
                  " arrays, arg0 to arg", count == 0 ? 0 : count - 1);
  }
  return {};
}

void say_made_up(std::size_t made_up, std::size_t all, const Options& options) {
  if (made_up == 0 || !options.random.empty()) return;
  say("hloom: made up " + std::to_string(made_up) + " of " + std::to_string(all) +
      " arguments, as --random=" + std::to_string(options.random_seed) + " does");
}

// From `npz`, or made up where it has no such array.
Expected<std::vector<hlo::Literal>> leaves_from(const arrays::Npz& npz, const std::string& path,
                                                std::span<const Shape> shapes, const Options& options) {
  std::vector<hlo::Literal> leaves;
  std::size_t number = 0, made_up = 0;
  for (const Shape& shape : shapes) {
    if (!shape.is_array()) {
      leaves.emplace_back(shape);
      continue;
    }
    const std::string name = argument_name(number++);
    const arrays::Array* array = npz.find(name);
    if (array != nullptr) {
      // One with run-time sizes is as large as it is.
      const Shape own = shape.has_dynamic_dims() ? TRY(compiler::sized(shape, array->dims)) : shape;
      leaves.push_back(TRY(arrays::to_literal(*array, own, path + ": " + name)));
      continue;
    }
    ++made_up;
    leaves.push_back(random_literal(shape, options.random_seed, number - 1));
  }
  TRY(refuse_unknown(npz, number, path));
  say_made_up(made_up, number, options);
  return leaves;
}

// The folder's values, which have the types of meta.json, as the program's.
Expected<std::vector<hlo::Literal>> leaves_from(const std::vector<hlo::Literal>& values, const std::string& path,
                                                std::span<const Shape> shapes) {
  std::vector<hlo::Literal> leaves;
  for (const hlo::Literal& value : values)
    for (const hlo::Literal* leaf : hlo::leaves(value)) leaves.push_back(*leaf);
  if (leaves.size() != shapes.size())
    return fail(Code::InvalidArgument, path, ": the folder has ", leaves.size(), " inputs, the program takes ",
                shapes.size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (!compatible(leaves[i].shape(), shapes[i]))
      return fail(Code::InvalidArgument, path, ": input ", i, " is ", to_string(leaves[i].shape(), false),
                  ", the program takes ", to_string(shapes[i], false));
  return leaves;
}

// Literals of arrays that do not fit would end the process.
Expected<> check_memory(const hlo::Module& module, const std::vector<Shape>& shapes, std::int64_t devices) {
  std::int64_t bytes = 0;
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  std::vector<Shape> all = shapes;
  for (const Shape& shape : compiler::result_leaves(module)) all.push_back(shape);
  for (const Shape& shape : all) {
    bytes += shape.is_array() ? shape.size_bytes() : 0;
    if (bytes < 0 || bytes > available / devices)
      return fail(Code::ResourceExhausted, module.name(), ": ", to_string(shape, false),
                  " and the arrays before it are larger than this machine's memory of ", available >> 20, " MiB");
  }
  return {};
}

}  // namespace

Expected<Devices> devices_of(const hlo::Module& module) {
  const Devices devices{module.config().replica_count, module.config().num_partitions};
  const auto fits = [](std::int64_t n) { return n >= 1 && n <= kMaxDevices; };
  if (!fits(devices.replicas) || !fits(devices.partitions) || !fits(devices.count()))
    return fail(Code::InvalidArgument, module.name(), ": asks for ", devices.replicas, " replicas of ",
                devices.partitions, " partitions; at most ", kMaxDevices, " devices can be run");
  return devices;
}

// More than 0 does not become 0, which is for ever.
std::chrono::milliseconds collective_timeout(const Options& options) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(options.collective_timeout_s));
}

std::string device_path(const std::string& path, std::int64_t k) {
  const std::filesystem::path whole(path);
  const std::string name = whole.stem().string() + ".dev" + std::to_string(k) + whole.extension().string();
  return (whole.parent_path() / name).string();
}

std::string file_of_device(const std::string& path, std::int64_t k, std::int64_t devices) {
  if (devices == 1) return path;
  std::string own = device_path(path, k);
  std::error_code none;
  return std::filesystem::exists(own, none) ? own : path;
}

Expected<std::vector<std::vector<hlo::Literal>>> read_arguments(const Options& options, const Source& source,
                                                                const hlo::Module& module, const Devices& devices) {
  const std::vector<Shape> shapes = compiler::parameter_leaves(module);
  TRY(check_memory(module, shapes, devices.count()));
  std::vector<std::vector<hlo::Literal>> of_device;
  for (std::int64_t k = 0; k < devices.count(); ++k) {
    if (!options.inputs.empty()) {
      const std::string path = file_of_device(options.inputs, k, devices.count());
      const arrays::Npz npz = TRY(read_arrays(path));
      of_device.push_back(TRY(leaves_from(npz, path, shapes, options)));
    } else if (source.folder && !source.bench_scale && options.random.empty()) {
      const auto& inputs = source.folder->inputs;
      const std::size_t own = std::min(static_cast<std::size_t>(k), inputs.size() - 1);
      of_device.push_back(TRY(leaves_from(inputs[own], source.path, shapes)));
    } else {
      arrays::Npz stored;
      const std::string path = options.program + "/bench_inputs.npz";
      if (source.bench_scale && std::filesystem::exists(path)) stored = TRY(arrays::read_npz(path));
      of_device.push_back(TRY(leaves_from(stored, path, shapes, options)));
    }
  }
  return of_device;
}

}  // namespace hloom::cli
