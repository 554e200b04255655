// The words of enumerations (hlo-text 11.8), for reading and writing.
#pragma once

#include <span>
#include <string_view>

#include "hlo/attributes.h"

namespace hloom::text {

template <typename E>
struct EnumWord {
  std::string_view word;
  E value;
};

/// The words of an enumeration; the first one is the default.
template <typename E>
std::span<const EnumWord<E>> words_of();

template <>
std::span<const EnumWord<hlo::Direction>> words_of();
template <>
std::span<const EnumWord<hlo::Comparison>> words_of();
template <>
std::span<const EnumWord<hlo::Precision>> words_of();
template <>
std::span<const EnumWord<hlo::FftType>> words_of();
template <>
std::span<const EnumWord<hlo::Transposition>> words_of();
template <>
std::span<const EnumWord<hlo::Distribution>> words_of();
template <>
std::span<const EnumWord<hlo::RngAlgorithm>> words_of();
template <>
std::span<const EnumWord<hlo::FusionKind>> words_of();
template <>
std::span<const EnumWord<hlo::ApiVersion>> words_of();
template <>
std::span<const EnumWord<hlo::CallSchedule>> words_of();
template <>
std::span<const EnumWord<hlo::PaddingType>> words_of();

/// The word of a value.
template <typename E>
std::string_view word_of(E value) {
  for (const EnumWord<E>& w : words_of<E>())
    if (w.value == value) return w.word;
  return {};
}

/// How operands of this type are compared where the text does not say.
hlo::Comparison default_comparison(DType);

/// Names that are kept as text: algorithms of dots, kinds of convolutions. The first one means "unset".
std::span<const std::string_view> dot_algorithms();
std::span<const std::string_view> convolution_kinds();

}  // namespace hloom::text
