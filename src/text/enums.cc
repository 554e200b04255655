#include "text/enums.h"

namespace hloom::text {

using namespace hlo;  // the enumerations

template <>
std::span<const EnumWord<Direction>> words_of() {
  static constexpr EnumWord<Direction> kWords[] = {{"EQ", Direction::Eq}, {"NE", Direction::Ne}, {"GE", Direction::Ge},
                                                   {"GT", Direction::Gt}, {"LE", Direction::Le}, {"LT", Direction::Lt}};
  return kWords;
}

template <>
std::span<const EnumWord<Comparison>> words_of() {
  static constexpr EnumWord<Comparison> kWords[] = {{"FLOAT", Comparison::Float},
                                                    {"TOTALORDER", Comparison::TotalOrder},
                                                    {"SIGNED", Comparison::Signed},
                                                    {"UNSIGNED", Comparison::Unsigned}};
  return kWords;
}

template <>
std::span<const EnumWord<Precision>> words_of() {
  static constexpr EnumWord<Precision> kWords[] = {
      {"default", Precision::Default}, {"high", Precision::High}, {"highest", Precision::Highest}};
  return kWords;
}

template <>
std::span<const EnumWord<FftType>> words_of() {
  static constexpr EnumWord<FftType> kWords[] = {
      {"FFT", FftType::Fft}, {"IFFT", FftType::Ifft}, {"RFFT", FftType::Rfft}, {"IRFFT", FftType::Irfft}};
  return kWords;
}

template <>
std::span<const EnumWord<Transposition>> words_of() {
  static constexpr EnumWord<Transposition> kWords[] = {{"NO_TRANSPOSE", Transposition::None},
                                                       {"TRANSPOSE", Transposition::Transpose},
                                                       {"ADJOINT", Transposition::Adjoint}};
  return kWords;
}

template <>
std::span<const EnumWord<Distribution>> words_of() {
  static constexpr EnumWord<Distribution> kWords[] = {{"rng_uniform", Distribution::Uniform},
                                                      {"rng_normal", Distribution::Normal}};
  return kWords;
}

template <>
std::span<const EnumWord<RngAlgorithm>> words_of() {
  static constexpr EnumWord<RngAlgorithm> kWords[] = {{"rng_default", RngAlgorithm::Default},
                                                      {"rng_three_fry", RngAlgorithm::ThreeFry},
                                                      {"rng_philox", RngAlgorithm::Philox}};
  return kWords;
}

template <>
std::span<const EnumWord<FusionKind>> words_of() {
  static constexpr EnumWord<FusionKind> kWords[] = {{"kLoop", FusionKind::Loop},
                                                    {"kInput", FusionKind::Input},
                                                    {"kOutput", FusionKind::Output},
                                                    {"kCustom", FusionKind::Custom}};
  return kWords;
}

template <>
std::span<const EnumWord<ApiVersion>> words_of() {
  static constexpr EnumWord<ApiVersion> kWords[] = {
      {"API_VERSION_ORIGINAL", ApiVersion::Original},
      {"API_VERSION_STATUS_RETURNING", ApiVersion::StatusReturning},
      {"API_VERSION_STATUS_RETURNING_UNIFIED", ApiVersion::StatusReturningUnified},
      {"API_VERSION_TYPED_FFI", ApiVersion::TypedFfi}};
  return kWords;
}

template <>
std::span<const EnumWord<CallSchedule>> words_of() {
  static constexpr EnumWord<CallSchedule> kWords[] = {{"SCHEDULE_NONE", CallSchedule::None},
                                                      {"SCHEDULE_LATEST", CallSchedule::Latest},
                                                      {"SCHEDULE_EARLIEST", CallSchedule::Earliest}};
  return kWords;
}

template <>
std::span<const EnumWord<PaddingType>> words_of() {
  static constexpr EnumWord<PaddingType> kWords[] = {{"PADDING_INVALID", PaddingType::Invalid},
                                                     {"PADDING_VALID", PaddingType::Valid},
                                                     {"PADDING_SAME", PaddingType::Same}};
  return kWords;
}

Comparison default_comparison(DType type) {
  if (is_signed(type)) return Comparison::Signed;
  return is_unsigned(type) || type == DType::Pred ? Comparison::Unsigned : Comparison::Float;
}

std::span<const std::string_view> dot_algorithms() {
  static constexpr std::string_view kWords[] = {"unset",
                                                "dot_any_f8_any_f8_f32",
                                                "dot_any_f8_any_f8_f32_fast_accum",
                                                "dot_any_f8_any_f8_any",
                                                "dot_any_f8_any_f8_any_fast_accum",
                                                "dot_f16_f16_f16",
                                                "dot_f16_f16_f32",
                                                "dot_bf16_bf16_bf16",
                                                "dot_bf16_bf16_f32",
                                                "dot_bf16_bf16_f32_x3",
                                                "dot_bf16_bf16_f32_x6",
                                                "dot_bf16_bf16_f32_x9",
                                                "dot_tf32_tf32_f32",
                                                "dot_tf32_tf32_f32_x3",
                                                "dot_f32_f32_f32",
                                                "dot_f64_f64_f64"};
  return kWords;
}

std::span<const std::string_view> convolution_kinds() {
  static constexpr std::string_view kWords[] = {"unset", "fprop", "dgrad", "wgrad"};
  return kWords;
}

}  // namespace hloom::text
