// Attributes with a grammar of their own: windows, paddings, dimension labels, slices … (hlo-text 11).
#pragma once

#include "text/attribute_kinds.h"

namespace hloom::text {

// Values.
hlo::Window read_window(Cursor&);
void write_window(std::string& out, const hlo::Window&);
std::vector<hlo::PadDim> read_padding(Cursor&);
void write_padding(std::string& out, const std::vector<hlo::PadDim>&);
hlo::ConvolutionDims read_dim_labels(Cursor&);
void write_dim_labels(std::string& out, const hlo::ConvolutionDims&);
hlo::SliceAttr read_slice(Cursor&);
void write_slice(std::string& out, const hlo::SliceAttr&);
std::vector<hlo::Aliasing> read_aliasing(Cursor&);
void write_aliasing(std::string& out, const std::vector<hlo::Aliasing>&);
std::vector<hlo::Precision> read_precision(Cursor&);
void write_precision(std::string& out, const std::vector<hlo::Precision>&);
/// One of `words`; the first is read as the empty text.
std::string read_word_of(Cursor&, std::span<const std::string_view> words);

}  // namespace hloom::text
