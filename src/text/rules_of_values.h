// Rules for attributes that describe values: dimensions, windows, labels, shapes, literals.
#pragma once

#include "text/attribute_values.h"
#include "text/literals.h"
#include "text/print_literal.h"

namespace hloom::text::rules {

using namespace hlo;
using Out = std::string;
using Style = WriteStyle;

// dimensions={…} of the instruction itself
template <bool required>
constexpr AttributeRule dimensions() {
  return {"dimensions", required,
          [](ModuleParser& p, Instruction& i) { i.set_dimensions(p.cursor().integers('{', '}', "a dimension")); },
          [](Out& out, const Instruction& i, const Style&) {
            write_braced(out, i.dimensions());
            return true;
          }};
}

constexpr AttributeRule all_to_all_dimensions() {
  return {"dimensions", false,
          [](ModuleParser& p, Instruction& i) {
            i.set_dimensions(p.cursor().integers('{', '}', "a dimension"));
            i.mutable_attr<CollectiveAttr>().has_dimension = true;
          },
          [](Out& out, const Instruction& i, const Style&) {
            write_braced(out, i.dimensions());
            return i.attr<CollectiveAttr>().has_dimension;
          }};
}

// The type of a comparison is written if it is not the one of its operands' type.
constexpr AttributeRule comparison_type() {
  return {
      "type", false,
      [](ModuleParser& p, Instruction& i) { i.mutable_attr<CompareAttr>().type = read_enum<Comparison>(p.cursor()); },
      [](Out& out, const Instruction& i, const Style&) {
        const Comparison type = i.attr<CompareAttr>().type;
        out += word_of(type);
        return i.operands().empty() || type != default_comparison(i.operand(0)->shape().dtype());
      }};
}

// As newer dumps have it: order=TOTAL of floats is the type TOTALORDER.
constexpr AttributeRule comparison_order() {
  return {"order", false,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            const char* at = c.at();
            const std::string_view order = c.take_word("'TOTAL' or 'PARTIAL'");
            Comparison& type = i.mutable_attr<CompareAttr>().type;
            if (order == "TOTAL" && type == Comparison::Float)
              type = Comparison::TotalOrder;
            else if (c.ok() && order != "TOTAL" && order != "PARTIAL")
              fail_enum(c, at, order, {"TOTAL", "PARTIAL"});
          },
          [](Out&, const Instruction&, const Style&) { return false; }};
}

template <auto M, bool required = false>
constexpr AttributeRule window() {
  return {"window", required, [](ModuleParser& p, Instruction& i) { field<M>(i) = read_window(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_window(out, field<M>(i));
            return !field<M>(i).empty();
          }};
}

// Of a custom call, which has none if it has no dimensions.
constexpr AttributeRule optional_window() {
  return {"window", false,
          [](ModuleParser& p, Instruction& i) {
            Window w = read_window(p.cursor());
            if (!w.empty()) i.mutable_attr<CustomCallAttr>().window = std::move(w);
          },
          [](Out& out, const Instruction& i, const Style&) {
            const auto& w = i.attr<CustomCallAttr>().window;
            if (w) write_window(out, *w);
            return w.has_value();
          }};
}

constexpr AttributeRule dim_labels() {
  return {"dim_labels", kRequired,
          [](ModuleParser& p, Instruction& i) { i.mutable_attr<ConvolutionAttr>().dims = read_dim_labels(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_dim_labels(out, i.attr<ConvolutionAttr>().dims);
            return true;
          }};
}

constexpr AttributeRule optional_dim_labels() {
  return {
      "dim_labels", false,
      [](ModuleParser& p, Instruction& i) { i.mutable_attr<CustomCallAttr>().conv_dims = read_dim_labels(p.cursor()); },
      [](Out& out, const Instruction& i, const Style&) {
        const auto& dims = i.attr<CustomCallAttr>().conv_dims;
        if (dims) write_dim_labels(out, *dims);
        return dims.has_value();
      }};
}

constexpr AttributeRule slice() {
  return {"slice", kRequired,
          [](ModuleParser& p, Instruction& i) { i.mutable_attr<SliceAttr>() = read_slice(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_slice(out, i.attr<SliceAttr>());
            return true;
          }};
}

constexpr AttributeRule padding() {
  return {"padding", kRequired,
          [](ModuleParser& p, Instruction& i) { i.mutable_attr<PadAttr>().dims = read_padding(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_padding(out, i.attr<PadAttr>().dims);
            return true;
          }};
}

template <auto M>
constexpr AttributeRule precision() {
  return {"operand_precision", false, [](ModuleParser& p, Instruction& i) { field<M>(i) = read_precision(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_precision(out, field<M>(i));
            return !field<M>(i).empty();
          }};
}

template <auto M>
constexpr AttributeRule dot_algorithm() {
  return {"algorithm", false,
          [](ModuleParser& p, Instruction& i) { field<M>(i) = read_word_of(p.cursor(), dot_algorithms()); },
          [](Out& out, const Instruction& i, const Style&) {
            out += field<M>(i);
            return !field<M>(i).empty();
          }};
}

constexpr AttributeRule convolution_kind() {
  return {"convolution_kind", false,
          [](ModuleParser& p, Instruction& i) {
            i.mutable_attr<ConvolutionAttr>().kind = read_word_of(p.cursor(), convolution_kinds());
          },
          [](Out& out, const Instruction& i, const Style&) {
            out += i.attr<ConvolutionAttr>().kind;
            return !i.attr<ConvolutionAttr>().kind.empty();
          },
          "conv_kind"};
}

template <auto M>
constexpr AttributeRule aliasing() {
  return {"output_to_operand_aliasing", false,
          [](ModuleParser& p, Instruction& i) { field<M>(i) = read_aliasing(p.cursor()); },
          [](Out& out, const Instruction& i, const Style&) {
            write_aliasing(out, field<M>(i));
            return !field<M>(i).empty();
          }};
}

constexpr AttributeRule associative() {
  return {"is_associative", false,
          [](ModuleParser& p, Instruction& i) {
            i.mutable_attr<ScanAttr>().associative = p.cursor().boolean("'true' or 'false'");
          },
          [](Out& out, const Instruction& i, const Style&) {
            const auto& value = i.attr<ScanAttr>().associative;
            out += value.value_or(false) ? "true" : "false";
            return value.has_value();
          }};
}

constexpr AttributeRule outfeed_shape() {
  return {"outfeed_shape", false,
          [](ModuleParser& p, Instruction& i) {
            i.mutable_attr<FeedAttr>().outfeed_shape = read_shape(p.cursor(), p.shape_rules());
          },
          [](Out& out, const Instruction& i, const Style& style) {
            const Shape& shape = i.attr<FeedAttr>().outfeed_shape;
            if (!shape.is_valid() || (!i.operands().empty() && shape == i.operand(0)->shape())) return false;
            out += to_string(shape, style.layouts);
            return true;
          }};
}

constexpr AttributeRule operand_layouts() {
  return {"operand_layout_constraints", false,
          [](ModuleParser& p, Instruction& i) {
            std::vector<Shape> shapes;
            p.cursor().list('{', '}', [&] { shapes.push_back(read_shape(p.cursor(), p.shape_rules())); });
            i.mutable_attr<CustomCallAttr>().operand_layouts = std::move(shapes);
          },
          [](Out& out, const Instruction& i, const Style&) {
            const auto& shapes = i.attr<CustomCallAttr>().operand_layouts;
            if (!shapes) return false;
            out += '{';
            for (const Shape& s : *shapes) {
              if (&s != &shapes->front()) out += ", ";
              out += to_string(s);
            }
            out += '}';
            return true;
          }};
}

constexpr AttributeRule custom_call_literal() {
  return {"literal", false,
          [](ModuleParser& p, Instruction& i) {
            const Shape shape = read_shape(p.cursor(), p.shape_rules());
            if (p.cursor().ok()) i.mutable_attr<CustomCallAttr>().literal = read_literal(p.cursor(), shape);
          },
          [](Out& out, const Instruction& i, const Style& style) {
            const auto& literal = i.attr<CustomCallAttr>().literal;
            if (!literal) return false;
            out += to_string(literal->shape(), style.layouts);
            out += ' ';
            write_literal(out, *literal, style.large_constants);
            return true;
          }};
}

}  // namespace hloom::text::rules
