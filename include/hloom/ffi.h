// Functions of your own as custom calls.
//
//   hloom::Expected<> done = hloom::ffi::register_handler("scale", [](const hloom::ffi::Call& call) -> hloom::Expected<> {
//     const double factor = call.attributes.number("factor").value_or(1);
//     …call.operand(0).data<float>()…
//     return {};
//   });
//
// serves `custom-call(x), custom_call_target="scale", backend_config={factor = 2.0 : f32}` of every program that is
// compiled or interpreted from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hloom/error.h"
#include "hloom/shape.h"

namespace hloom::ffi {

struct NamedAttribute;

/// The entries of a dictionary, in the order of the text. Names occur once.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(std::vector<NamedAttribute> entries);

  const std::vector<NamedAttribute>& entries() const { return entries_; }
  /// The attribute of that name, or null.
  const NamedAttribute* find(std::string_view name) const;

  // The value where the name is there and the type fits: `flag` takes true, false and units, `integer` integers and
  // flags, `number` integers and floats, `text` strings.
  std::optional<bool> flag(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string_view> text(std::string_view name) const;

 private:
  std::vector<NamedAttribute> entries_;
};

/// A list is of integers where all its elements are, else of floats. What has a form that is not known is its text, as
/// a string.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, Attributes>;

struct NamedAttribute {
  std::string name;
  Attribute value;
};

/// One array or token of a call: a leaf of the operands or results, tuples depth first.
class Buffer {
 public:
  Buffer(const Shape& shape, void* bytes) : shape_(&shape), bytes_(bytes) {}

  DType dtype() const { return shape_->dtype(); }
  const std::vector<std::int64_t>& dims() const { return shape_->dims(); }
  /// With the layout in which the elements lie: row-major, unless the program's operand_layout_constraints or the
  /// result's own layout say otherwise.
  const Shape& shape() const { return *shape_; }
  /// The elements, shape().size_bytes() of them. Of a token there are none.
  template <typename T>
  T* data() const {
    return static_cast<T*>(bytes_);
  }

 private:
  const Shape* shape_;
  void* bytes_;
};

/// What a handler sees. Valid until it returns.
struct Call {
  std::string_view target;
  std::string_view instruction;    ///< its name in the program
  std::span<const Buffer> operands;  ///< to be read only, but for those that are a result's memory (output_to_operand_aliasing)
  std::span<const Buffer> results;   ///< to be written whole; what stands there before is undefined
  const Attributes& attributes;    ///< of backend_config, where that is a dictionary
  std::string_view backend_config; ///< as written

  const Buffer& operand(std::size_t i) const { return operands[i]; }
  const Buffer& result(std::size_t i) const { return results[i]; }
};

/// Does the work, or says why not: run() then ends with that error, the instruction's name in front.
/// It runs on the thread that called run(), in the default floating point mode, and several at once where several threads
/// run programs. It must not throw.
using Handler = std::function<Expected<>(const Call&)>;

/// Serves the target from now on. The handler is copied into each program that is compiled with it and lives as long as
/// the longest-lived of these. Any thread may call it.
/// Errors: InvalidArgument for an empty target or handler; AlreadyExists if the target has a handler, or is hloom's own.
Expected<> register_handler(std::string target, Handler handler);

/// Programs compiled from now on do not find the handler. False if there was none.
bool unregister_handler(std::string_view target);

}  // namespace hloom::ffi
