#include "compiler/sampled_check.h"

#include <algorithm>

#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "runtime/threads.h"

namespace hloom::compiler {

using hlo::Instruction;
using hlo::Literal;

namespace {

constexpr std::int64_t kBoxes = 8;
constexpr double kMostWhole = 2e9;  // steps of what has no boxes

Expected<std::optional<std::string>> compare(const BoxValues::Computed& want, const Literal& got) {
  const auto got_leaves = hlo::leaves(got), want_leaves = hlo::leaves(want.value);
  for (std::size_t l = 0; l < got_leaves.size(); ++l) {
    if (!got_leaves[l]->shape().is_array()) continue;
    auto problem = TRY(differs(*want.instruction, want.operands, *got_leaves[l], *want_leaves[l]));
    if (problem && want.box) *problem += ", in its box " + to_string(*want.box);
    if (problem) return problem;
  }
  return std::optional<std::string>();
}

std::int64_t elements_of(const Shape& shape) {
  std::int64_t all = 0;
  for (const Shape* leaf : leaves(shape)) all += leaf->is_array() ? leaf->num_elements() : 0;
  return all;
}

}  // namespace

SampledCheck::SampledCheck(const BoxValues::Known& known, const BoxValues::IsKnown& is_known, double budget) : budget_(budget) {
  for (int w = 0; w < runtime::process_pool().num_threads(); ++w) values_.emplace_back(known, is_known, std::max(budget, kMostWhole));
}

// None: the whole is cheap enough, or has no parts.
std::vector<Box> SampledCheck::boxes(const Instruction& i, std::uint64_t seed) {
  const double work = values_[0].work(i);
  if (work <= budget_ || !has_boxes(i.shape())) return {};
  const Shape& array = i.shape().is_tuple() ? i.shape().element(0) : i.shape();
  const double elements = budget_ / work * static_cast<double>(array.num_elements());
  const auto count = std::clamp<std::int64_t>(static_cast<std::int64_t>(elements), 2, kBoxes);
  const auto each = static_cast<std::int64_t>(elements / static_cast<double>(count));
  return sample_boxes(array, std::max<std::int64_t>(each, 1), count, seed);
}

Expected<SampledCheck::Result> SampledCheck::check_box(BoxValues& values, const Instruction& i, const Box* box, const Shown& shown) {
  auto want = values.compute(i, box);
  Result result;
  if (!want && want.error().code() == Code::ResourceExhausted) {
    result.skipped = true;
    return result;
  }
  if (!want) return want.error();
  const Literal got = shown(want->box ? &*want->box : nullptr);
  result.elements = elements_of(got.shape());
  result.problem = TRY(compare(*want, got));
  return result;
}

Expected<SampledCheck::Result> SampledCheck::check(const Instruction& i, const Shown& shown, std::uint64_t seed) {
  const std::vector<Box> parts = boxes(i, seed);
  std::vector<std::optional<Expected<Result>>> results(std::max<std::size_t>(1, parts.size()));
  const auto body = [&](std::size_t worker, std::size_t workers) {
    for (std::size_t n = worker; n < results.size(); n += workers)
      results[n] = check_box(values_[worker], i, parts.empty() ? nullptr : &parts[n], shown);
  };
  runtime::process_pool().run(
      static_cast<int>(std::min(results.size(), values_.size())),
      [](void* context, int worker, int workers) {
        (*static_cast<decltype(&body)>(context))(static_cast<std::size_t>(worker), static_cast<std::size_t>(workers));
      },
      const_cast<void*>(static_cast<const void*>(&body)));
  Result all;
  all.of = elements_of(i.shape());
  for (auto& one : results) {
    Result result = TRY(*std::move(one));
    all.elements += result.elements;
    all.skipped = all.skipped || result.skipped;
    if (!all.problem) all.problem = std::move(result.problem);
  }
  all.elements = std::min(all.elements, all.of);
  return all;
}

}  // namespace hloom::compiler
