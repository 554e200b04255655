#include "loops.h"

namespace hloom::loops {
namespace {

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// `body` sees the counter i, s32[], and the arrays a, b, c; `next` names what they become. N stands for the elements.
struct Source {
  const char* name;
  std::vector<std::string> arrays;
  std::string body;
  std::vector<std::string> next;
  std::string computations = {};
  bool changes_all = false;
};

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Loop make(const Source& source, std::int64_t n, std::int64_t steps, bool known_steps) {
  std::vector<std::string> state{"s32[]"}, next{"i.next"}, first{"zero"}, aliases, names;
  for (std::size_t k = 0; k < source.arrays.size(); ++k) {
    const std::string number = std::to_string(k);
    state.push_back(source.arrays[k]);
    next.push_back(source.next[k]);
    names.emplace_back(1, static_cast<char>('a' + k));
    first.push_back(names.back());
    aliases.push_back("{" + number + "}: (" + number + ", {}, may-alias)");
  }
  state.emplace_back("s32[]");
  next.emplace_back("steps");
  first.emplace_back("steps");
  const std::string type = "(" + list(state) + ")", last = std::to_string(state.size() - 1);
  std::string elements, parameters, results;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string number = std::to_string(k), behind = std::to_string(k + 1);
    elements += "  " + names[k] + " = " + state[k + 1] + " get-tuple-element(s), index=" + behind + "\n";
    parameters += "  " + names[k] + " = " + state[k + 1] + " parameter(" + number + ")\n";
    results += "  r" + number + " = " + state[k + 1] + " get-tuple-element(w), index=" + behind + "\n";
  }
  std::string text = "HloModule " + std::string(source.name) + ", input_output_alias={ " + list(aliases) + " }\n" +
                     source.computations + "body { s = " + type + " parameter(0)\n" +
                     "  i = s32[] get-tuple-element(s), index=0\n" + elements +
                     "  steps = s32[] get-tuple-element(s), index=" + last + "\n" + source.body +
                     "  one.next = s32[] constant(1)\n  i.next = s32[] add(i, one.next)\n  ROOT next = " + type +
                     " tuple(" + list(next) + ") }\n" + "condition { s = " + type + " parameter(0)\n" +
                     "  i = s32[] get-tuple-element(s), index=0\n  steps = s32[] get-tuple-element(s), index=" + last +
                     "\n  ROOT more = pred[] compare(i, steps), direction=LT }\nENTRY main {\n" + parameters +
                     "  zero = s32[] constant(0)\n" +
                     (known_steps ? "  steps = s32[] constant(" + std::to_string(steps) + ")\n"
                                  : "  steps = s32[] parameter(" + std::to_string(names.size()) + ")\n") +
                     "  t = " + type + " tuple(" + list(first) + ")\n  w = " + type +
                     " while(t), condition=condition, body=body\n" + results;
  std::vector<std::string> numbered;
  for (std::size_t k = 0; k < names.size(); ++k) numbered.push_back("r" + std::to_string(k));
  text += "  ROOT r = (" + list(source.arrays) + ") tuple(" + list(numbered) + ") }\n";
  Loop loop{source.name, text, source.arrays, source.changes_all};
  replace_all(loop.text, "[N", "[" + std::to_string(n));
  replace_all(loop.text, "(N)", "(" + std::to_string(n) + ")");
  replace_all(loop.text, "[M", "[" + std::to_string(n / 8));
  replace_all(loop.text, "8,M]", "8," + std::to_string(n / 8) + "]");
  for (std::string& p : loop.parameters) {
    replace_all(p, "[N", "[" + std::to_string(n));
    replace_all(p, "[M", "[" + std::to_string(n / 8));
    replace_all(p, "8,M]", "8," + std::to_string(n / 8) + "]");
  }
  return loop;
}

const std::string kFlip = "  v = f32[8] dynamic-slice(a, i), dynamic_slice_sizes={8}\n  w = f32[8] negate(v)\n";
const std::string kUpdate = kFlip + "  y = f32[N] dynamic-update-slice(a, w, i)\n";
const std::string kOdd = "  two = s32[] constant(2)\n  rest = s32[] remainder(i, two)\n  nought = s32[] constant(0)\n"
                         "  p = pred[] compare(rest, nought), direction=EQ\n";

const std::string kBranches = R"(update { t = (s32[], f32[N]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[N] get-tuple-element(t), index=1
  v = f32[8] dynamic-slice(a, i), dynamic_slice_sizes={8}
  w = f32[8] negate(v)
  ROOT y = f32[N] dynamic-update-slice(a, w, i) }
keep { t = (s32[], f32[N]) parameter(0)
  ROOT a = f32[N] get-tuple-element(t), index=1 }
)";

const std::string kInner = R"(inner.body { t = (s32[], s32[], f32[N]) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  a = f32[N] get-tuple-element(t), index=2
  at = s32[] add(i, j)
  v = f32[1] dynamic-slice(a, at), dynamic_slice_sizes={1}
  w = f32[1] negate(v)
  y = f32[N] dynamic-update-slice(a, w, at)
  one = s32[] constant(1)
  k = s32[] add(j, one)
  ROOT r = (s32[], s32[], f32[N]) tuple(k, i, y) }
inner.condition { t = (s32[], s32[], f32[N]) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  four = s32[] constant(4)
  ROOT l = pred[] compare(j, four), direction=LT }
)";

std::vector<Source> sources() {
  const std::string one = "f32[N]";
  return {
      {"window", {one}, kUpdate, {"y"}},
      {"random_window",
       {one},
       "  k = s32[] constant(-1640531535)\n  h = s32[] multiply(i, k)\n  eight = s32[] constant(8)\n"
       "  q = s32[] shift-right-logical(h, eight)\n  n = s32[] constant(N)\n  at = s32[] remainder(q, n)\n"
       "  v = f32[1] dynamic-slice(a, at), dynamic_slice_sizes={1}\n  w = f32[1] negate(v)\n"
       "  y = f32[N] dynamic-update-slice(a, w, at)\n",
       {"y"}},
      {"two_arrays",
       {one, one},
       "  v = f32[8] dynamic-slice(a, i), dynamic_slice_sizes={8}\n"
       "  w = f32[8] dynamic-slice(b, i), dynamic_slice_sizes={8}\n"
       "  y = f32[N] dynamic-update-slice(a, w, i)\n  z = f32[N] dynamic-update-slice(b, v, i)\n",
       {"y", "z"}},
      {"two_arrays_in_turn",
       {one, one},
       "  v = f32[8] dynamic-slice(b, i), dynamic_slice_sizes={8}\n  y = f32[N] dynamic-update-slice(a, v, i)\n"
       "  two = s32[] constant(2)\n  j = s32[] add(i, two)\n"
       "  w = f32[8] dynamic-slice(y, j), dynamic_slice_sizes={8}\n  u = f32[8] negate(w)\n"
       "  z = f32[N] dynamic-update-slice(b, u, i)\n",
       {"y", "z"}},
      {"stack",
       {one, "f32[8]"},
       "  y = f32[N] dynamic-update-slice(a, b, i)\n  w = f32[8] negate(b)\n",
       {"y", "w"}},
      {"earlier_elements",
       {one},
       "  two = s32[] constant(2)\n  j = s32[] add(i, two)\n  k = s32[] constant(1)\n  h = s32[] add(i, k)\n"
       "  v = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}\n"
       "  w = f32[1] dynamic-slice(a, h), dynamic_slice_sizes={1}\n  u = f32[1] subtract(v, w)\n"
       "  y = f32[N] dynamic-update-slice(a, u, j)\n",
       {"y"}},
      {"other_window",
       {"f32[M,8]"},
       "  z = s32[] constant(0)\n  k = s32[] constant(3)\n  j = s32[] add(i, k)\n"
       "  v = f32[1,8] dynamic-slice(a, i, z), dynamic_slice_sizes={1,8}\n  w = f32[1,8] negate(v)\n"
       "  y = f32[M,8] dynamic-update-slice(a, w, j, z)\n",
       {"y"}},
      {"read_after_write",
       {one, "f32[8]"},
       kUpdate + "  k = s32[] constant(4)\n  j = s32[] add(i, k)\n"
                 "  q = f32[8] dynamic-slice(y, j), dynamic_slice_sizes={8}\n  u = f32[8] add(b, q)\n",
       {"y", "u"}},
      {"read_before_write_too",
       {one, "f32[8]"},
       kUpdate + "  k = s32[] constant(4)\n  j = s32[] add(i, k)\n"
                 "  q = f32[8] dynamic-slice(a, j), dynamic_slice_sizes={8}\n  u = f32[8] add(b, q)\n",
       {"y", "u"}},
      {"ring",
       {"f32[M,8]", "f32[1,8]"},
       "  z = s32[] constant(0)\n  k = s32[] constant(5)\n  at = s32[] remainder(i, k)\n  h = s32[] add(i, k)\n"
       "  e = s32[] constant(1)\n  g = s32[] subtract(h, e)\n  before = s32[] remainder(g, k)\n"
       "  v = f32[1,8] dynamic-slice(a, before, z), dynamic_slice_sizes={1,8}\n  w = f32[1,8] add(v, b)\n"
       "  y = f32[M,8] dynamic-update-slice(a, w, at, z)\n  u = f32[1,8] negate(w)\n",
       {"y", "u"}},
      {"branch",
       {one},
       kOdd + "  t = (s32[], f32[N]) tuple(i, a)\n"
              "  y = f32[N] conditional(p, t, t), true_computation=update, false_computation=keep\n",
       {"y"},
       kBranches},
      {"other_branch",
       {one},
       kOdd + "  t = (s32[], f32[N]) tuple(i, a)\n"
              "  y = f32[N] conditional(p, t, t), true_computation=keep, false_computation=update\n",
       {"y"},
       kBranches},
      {"nested",
       {one},
       "  z = s32[] constant(0)\n  t = (s32[], s32[], f32[N]) tuple(z, i, a)\n"
       "  l = (s32[], s32[], f32[N]) while(t), condition=inner.condition, body=inner.body\n"
       "  y = f32[N] get-tuple-element(l), index=2\n",
       {"y"},
       kInner},
      {"chosen",
       {one},
       kOdd + kUpdate + "  q = pred[N] broadcast(p), dimensions={}\n  x = f32[N] select(q, y, a)\n",
       {"x"}},
      {"chosen_by_row",
       {"f32[8,M]", "s32[8]"},
       "  z = s32[] constant(0)\n  v = f32[8,1] dynamic-slice(a, z, i), dynamic_slice_sizes={8,1}\n"
       "  w = f32[8,1] negate(v)\n  y = f32[8,M] dynamic-update-slice(a, w, z, i)\n"
       "  e = s32[8] broadcast(i), dimensions={}\n  p = pred[8] compare(e, b), direction=LT\n"
       "  q = pred[8,M] broadcast(p), dimensions={0}\n  x = f32[8,M] select(q, y, a)\n",
       {"x", "b"}},
      {"scattered",
       {one},
       "  at = s32[2,1] broadcast(i), dimensions={}\n  u = f32[2] constant({1, 2})\n"
       "  y = f32[N] scatter(a, at, u), update_window_dims={}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n",
       {"y"},
       "sum { l = f32[] parameter(0)\n  m = f32[] parameter(1)\n  ROOT o = f32[] add(l, m) }\n"},
      {"swapped", {one, one}, kUpdate, {"b", "y"}},
      {"swapped_round",
       {one, one, one},
       kUpdate,
       {"b", "c", "y"}},
      {"passed_through", {one, "f32[8]"}, "  v = f32[8] dynamic-slice(a, i), dynamic_slice_sizes={8}\n  w = f32[8] add(v, b)\n", {"a", "w"}},
      {"double_buffer",
       {one, one},
       "  h = f32[N] reverse(a), dimensions={0}\n  y = f32[N] subtract(h, a)\n",
       {"y", "a"},
       {},
       true},
      {"stencil",
       {one},
       "  h = f32[N] reverse(a), dimensions={0}\n  y = f32[N] subtract(h, a)\n",
       {"y"},
       {},
       true},
  };
}

}  // namespace

std::vector<Loop> loops(std::int64_t n, std::int64_t steps, bool known_steps) {
  std::vector<Loop> result;
  for (const Source& source : sources()) result.push_back(make(source, n, steps, known_steps));
  return result;
}

}  // namespace hloom::loops
