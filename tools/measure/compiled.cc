#include "compiled.h"

#include <cstdio>
#include <cstdlib>

namespace hloom::measure {
namespace {

template <class T>
T or_end(Expected<T> value) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "measure_functions: %s\n", value.error().message().c_str());
  std::exit(1);
}

Executable compile(const std::string& hlo) {
  CompileOptions options;
  options.threads = 1;
  return or_end(Executable::compile(hlo, options));
}

}  // namespace

Compiled::Compiled(const std::string& hlo) : program_(compile(hlo)) {}

void Compiled::run(std::span<const std::span<std::byte>> in, std::span<const std::span<std::byte>> out) const {
  const Expected<> done = program_.run_into(in, out);
  if (done) return;
  std::fprintf(stderr, "measure_functions: %s\n", done.error().message().c_str());
  std::exit(1);
}

std::string unary_program(const std::string& function, const std::string& type) {
  const std::string array = type + "[" + std::to_string(kBlock) + "] ";
  return "ENTRY e { x = " + array + "parameter(0)\n ROOT y = " + array + function + "(x) }";
}

std::string binary_program(const std::string& function, const std::string& type) {
  const std::string array = type + "[" + std::to_string(kBlock) + "] ";
  return "ENTRY e { x = " + array + "parameter(0)\n y = " + array + "parameter(1)\n ROOT z = " + array + function +
         "(x, y) }";
}

std::string narrow_program(const std::string& function, const std::string& type) {
  const std::string n = "[" + std::to_string(kBlock) + "]";
  return "ENTRY e { b = u16" + n + " parameter(0)\n x = " + type + n + " bitcast-convert(b)\n y = " + type + n + " " +
         function + "(x)\n a = f32" + n + " convert(x)\n r = f32" + n + " convert(y)\n ROOT t = (f32" + n + ", f32" + n +
         ") tuple(a, r) }";
}

}  // namespace hloom::measure
