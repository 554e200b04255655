#include "hlo/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "text/parse.h"

namespace hloom::hlo {
namespace {

std::unique_ptr<Module> parse(std::string_view text) {
  auto module = text::parse_module(text, {.verify = false});
  EXPECT_TRUE(module) << (module ? "" : module.error().message());
  return module ? *std::move(module) : nullptr;
}

Instruction& find(Module& m, std::string_view name) {
  for (Computation& c : m.computations())
    for (Instruction& i : c.instructions())
      if (i.name() == name) return i;
  ADD_FAILURE() << "no instruction " << name;
  std::abort();
}

std::vector<std::string> codes(const Module& m, const VerifyOptions& options = {}) {
  std::vector<std::string> result;
  for (const Diagnostic& d : verify(m, options)) result.push_back(d.code);
  return result;
}

std::string messages(const Module& m, const VerifyOptions& options = {}) {
  const auto good = check_module(m, options);
  return good ? "" : good.error().message();
}

// A module that is good, and a change that breaks one rule of it.
struct Case {
  std::string code;
  std::string text;
  std::function<void(Module&)> damage;
  VerifyOptions options = {};
};

Shape f32(Dims dims) { return Shape::array(DType::F32, std::move(dims)); }

template <typename Attr>
std::function<void(Module&)> change(const char* name, void (*f)(Attr&)) {
  return [=](Module& m) { f(find(m, name).mutable_attr<Attr>()); };
}
std::function<void(Module&)> reshape(const char* name, Shape shape) {
  return [=](Module& m) { find(m, name).set_shape(shape); };
}
std::function<void(Module&)> set_dims(const char* name, Dims dims) {
  return [=](Module& m) { find(m, name).set_dimensions(dims); };
}

constexpr const char* kAdd = "add_f32 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n";
constexpr const char* kLess =
    "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }\n";

std::string entry(std::string body, std::string before = {}, std::string header = {}) {
  return "HloModule m" + header + "\n" + before + "ENTRY e {\n" + body + "}\n";
}

const std::string kLoop = R"(
cond { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3)
       ROOT c = pred[] compare(i, n), direction=LT }
body { q = (s32[], f32[4]) parameter(0) j = s32[] get-tuple-element(q), index=0 one = s32[] constant(1)
       k = s32[] add(j, one) x = f32[4] get-tuple-element(q), index=1 ROOT r = (s32[], f32[4]) tuple(k, x) }
)";

std::vector<Case> cases() {
  const std::string add2 = "x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT z = f32[4] add(x, y)\n";
  const std::string send = R"(d = f32[4] parameter(0) t = token[] after-all()
    s = (f32[4], u32[], token[]) send(d, t), channel_id=1 ROOT u = token[] send-done(s), channel_id=1
)";
  const std::string async = R"(d = f32[4] parameter(0)
    s = ((f32[4]), f32[4], u32[]) async-start(d), calls=wrapped ROOT u = f32[4] async-done(s)
)";
  const std::string wrapped = "wrapped { w = f32[4] parameter(0) ROOT n = f32[4] negate(w) }\n";
  const std::string fused = "fused { w = f32[4] parameter(0) ROOT n = f32[4] negate(w) }\n";
  const std::string reduce =
      "x = f32[2,4] parameter(0) z = f32[] constant(0)\n"
      "ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add_f32\n";
  return {
      {"H701", entry(add2), reshape("z", f32({5}))},
      {"H701", entry(add2), reshape("y", Shape::array(DType::S32, {4}))},
      {"H701", entry(add2), [](Module& m) { find(m, "z").append_operand(&find(m, "x")); }},
      {"H701", entry(add2),
       [](Module& m) {
         find(m, "z").set_attributes(IotaAttr());
         find(m, "z").set_shape(Shape());
       }},
      {"H702", entry(add2), [](Module& m) { m.rename(find(m, "x"), "a b"); }},
      {"H703", entry(add2, kAdd), [](Module& m) { find(m, "z").replace_operand(0, &find(m, "s")); }},
      {"H703", entry(add2),
       [](Module& m) {
         find(m, "x").add_control_predecessor(&find(m, "y"));
         find(m, "y").add_control_predecessor(&find(m, "x"));
       }},
      {"H703",
       entry("x = f32[2] parameter(0) ROOT r = f32[2] call(x), to_apply=f\n",
             "f { a = f32[2] parameter(0) ROOT n = f32[2] negate(a) }\n"),
       [](Module& m) {
         Computation* f = find(m, "n").parent();
         Instruction* again = f->add(Opcode::Call, f32({2}), {f->parameter(0)});
         again->set_called({f});
       }},
      {"H703", entry(add2),
       [](Module& m) {
         Computation* e = m.entry();
         Instruction* late = e->add(Opcode::Negate, f32({4}), {&find(m, "x")});
         find(m, "z").replace_operand(0, late);
       }},
      {"H703",
       entry(add2),
       [](Module& m) { m.add_computation("unused")->add_constant(Literal(Shape::scalar(DType::F32))); },
       {.all_reached = true}},
      {"H704", entry(reduce, kAdd),
       [](Module& m) {
         find(m, "b").set_shape(Shape::scalar(DType::S32));
         find(m, "s").set_shape(Shape::scalar(DType::F32));
         find(m, "s").replace_operand(1, &find(m, "a"));
       }},
      {"H704", entry("x = f32[4] parameter(0) ROOT y = f32[4] fusion(x), kind=kLoop, calls=fused\n", fused),
       [](Module& m) {
         Instruction& y = find(m, "y");
         m.entry()->set_root(m.entry()->add_clone(y, {&y}));
       }},
      {"H705", entry(add2), change<ParameterAttr>("x", [](ParameterAttr& a) { a.number = 1; })},
      {"H705", entry(add2), [](Module& m) { m.entry()->set_root(nullptr); }},
      {"H705", entry(add2),
       [](Module& m) {
         m.config().has_entry_layout = true;
         m.config().entry_parameters = {f32({4}), f32({4})};
         m.config().entry_result = f32({3});
       }},
      {"H206", entry(add2),
       [](Module& m) {
         m.config().has_entry_layout = true;
         m.config().entry_parameters = {f32({4})};
         m.config().entry_result = f32({4});
       }},
      {"H706", entry("x = f32[4] parameter(0) ROOT y = f32[2,4] broadcast(x), dimensions={1}\n"), set_dims("y", {0})},
      {"H706", entry("x = f32[4] parameter(0) ROOT y = f32[2,4] broadcast(x), dimensions={1}\n"), set_dims("y", {7})},
      {"H707", entry("x = f32[2,4] parameter(0) ROOT y = f32[4,2] transpose(x), dimensions={1,0}\n"),
       set_dims("y", {1, 1})},
      {"H707", entry("x = f32[2,4] parameter(0) ROOT y = f32[2,4] reverse(x), dimensions={1}\n"),
       set_dims("y", {1, 1})},
      {"H707", entry("x = f32[2,4] parameter(0) ROOT y = f32[2,8] concatenate(x, x), dimensions={1}\n"),
       set_dims("y", {2})},
      {"H708", entry("x = f32[2,4] parameter(0) ROOT y = f32[8] reshape(x)\n"), reshape("y", f32({9}))},
      {"H709", entry("x = f32[9] parameter(0) ROOT y = f32[3] slice(x), slice={[1:7:2]}\n"),
       change<SliceAttr>("y", [](SliceAttr& a) { a.limits = {10}; })},
      {"H709",
       entry("x = f32[9] parameter(0) i = s32[] parameter(1) ROOT y = f32[3] dynamic-slice(x, i), "
             "dynamic_slice_sizes={3}\n"),
       change<DynamicSliceAttr>("y", [](DynamicSliceAttr& a) { a.sizes = {10}; })},
      {"H709",
       entry("x = f32[9] parameter(0) u = f32[3] parameter(1) i = s32[] parameter(2) "
             "ROOT y = f32[9] dynamic-update-slice(x, u, i)\n"),
       reshape("u", f32({10}))},
      {"H710", entry("x = f32[3] parameter(0) z = f32[] constant(0) ROOT y = f32[6] pad(x, z), padding=-1_2_1\n"),
       change<PadAttr>("y", [](PadAttr& a) { a.dims[0].interior = -1; })},
      {"H710", entry("x = f32[3] parameter(0) z = f32[] constant(0) ROOT y = f32[6] pad(x, z), padding=-1_2_1\n"),
       change<PadAttr>("y", [](PadAttr& a) { a.dims[0].low = -100; })},
      {"H711",
       entry("x = s32[3,2] parameter(0) i = s32[2] parameter(1) ROOT y = s32[2,2] gather(x, i), "
             "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
             "slice_sizes={1,2}\n"),
       change<GatherAttr>("y", [](GatherAttr& a) { a.start_index_map = {0, 1}; })},
      {"H711",
       entry("x = f32[4] parameter(0) i = s32[3,1] parameter(1) u = f32[3] parameter(2) "
             "ROOT y = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
             "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32\n",
             kAdd),
       change<ScatterAttr>("y", [](ScatterAttr& a) { a.inserted_window_dims = {}; })},
      {"H712",
       entry("x = f32[4] parameter(0) z = f32[] constant(0) ROOT y = f32[4] reduce-window(x, z), "
             "window={size=3 pad=1_1}, to_apply=add_f32\n",
             kAdd),
       change<WindowAttr>("y", [](WindowAttr& a) { a.window[0].stride = 0; })},
      {"H712",
       entry("x = f32[2,8,2] parameter(0) k = f32[3,2,4] parameter(1) ROOT y = f32[2,6,4] convolution(x, k), "
             "window={size=3}, dim_labels=b0f_0io->b0f\n"),
       change<ConvolutionAttr>("y", [](ConvolutionAttr& a) { a.feature_groups = 2; })},
      {"H713",
       entry("x = f32[2,8] parameter(0) y = f32[8,3] parameter(1) ROOT z = f32[2,3] dot(x, y), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"),
       change<DotAttr>("z", [](DotAttr& a) { a.rhs_contracting = {1}; })},
      {"H713",
       entry("x = f32[6,3] parameter(0) y = f32[3,3,2] parameter(1) g = s32[3] parameter(2)\n"
             "ROOT r = f32[6,2] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
             "lhs_ragged_dims={0}, rhs_group_dims={0}\n"),
       change<DotAttr>("r", [](DotAttr& a) { a.lhs_ragged = {}; })},
      {"H714", entry("ROOT y = s32[4] iota(), iota_dimension=0\n"),
       change<IotaAttr>("y", [](IotaAttr& a) { a.dimension = 1; })},
      {"H715", entry("x = f32[4] parameter(0) ROOT y = f32[4] sort(x), dimensions={0}, to_apply=less\n", kLess),
       set_dims("y", {3})},
      {"H704", entry("x = f32[4] parameter(0) ROOT y = f32[4] sort(x), dimensions={0}, to_apply=less\n", kLess),
       [](Module& m) {
         find(m, "l").set_shape(Shape::scalar(DType::S32));
         find(m, "y").set_dimensions({0});
       }},
      {"H716", entry("x = u32[1] parameter(0) ROOT y = u8[1,4] bitcast-convert(x)\n"),
       reshape("y", Shape::array(DType::C64, {1}))},
      {"H716", entry("x = f32[6] parameter(0) ROOT y = f32[2,3] bitcast(x)\n"), reshape("y", f32({7}))},
      {"H717", entry("x = f32[4] parameter(0) ROOT y = f32[4] reduce-precision(x), exponent_bits=5, mantissa_bits=2\n"),
       change<ReducePrecisionAttr>("y", [](ReducePrecisionAttr& a) { a.exponent_bits = 0; })},
      {"H717", entry("x = c64[4] parameter(0) ROOT y = c64[4] fft(x), fft_type=FFT, fft_length={4}\n"),
       change<FftAttr>("y", [](FftAttr& a) { a.length = {5}; })},
      {"H717", entry("x = f32[4] parameter(0) ROOT y = (f32[2], s32[2]) topk(x), k=2\n"),
       change<TopKAttr>("y", [](TopKAttr& a) { a.k = 5; })},
      {"H717", entry("x = f32[3,3] parameter(0) ROOT y = f32[3,3] cholesky(x), lower=true\n"),
       reshape("x", f32({3, 4}))},
      {"H718",
       entry("i = (s32[], f32[4]) parameter(0) ROOT w = (s32[], f32[4]) while(i), condition=cond, body=body\n", kLoop),
       [](Module& m) { find(m, "w").set_called({find(m, "k").parent(), find(m, "k").parent()}); }},
      {"H718",
       entry("p = pred[] parameter(0) x = f32[4] parameter(1) ROOT y = f32[4] conditional(p, x, x), "
             "true_computation=a, false_computation=b\n",
             "a { u = f32[4] parameter(0) ROOT v = f32[4] negate(u) }\n"
             "b { s = f32[4] parameter(0) ROOT t = f32[4] abs(s) }\n"),
       reshape("p", Shape::scalar(DType::U32))},
      {"H719", entry("x = f32[4] parameter(0) ROOT y = f32[4] fusion(x), kind=kLoop, calls=fused\n", fused),
       [](Module& m) {
         Computation* f = find(m, "n").parent();
         f->add(Opcode::Abs, f32({4}), {f->parameter(0)});
       }},
      {"H719", entry("x = f32[4] parameter(0) ROOT y = f32[4] fusion(x), kind=kLoop, calls=fused\n", fused),
       change<FusionAttr>("y", [](FusionAttr& a) { a.aliasing = {{{}, 3, {}}}; })},
      {"H720", entry(async, wrapped),
       [](Module& m) { m.entry()->set_root(m.entry()->add_clone(find(m, "u"), {&find(m, "s")})); }},
      {"H720", entry(async, wrapped), change<AsyncAttr>("u", [](AsyncAttr& a) { a.execution_thread = "other"; })},
      {"H721", entry(send), change<TransferAttr>("u", [](TransferAttr& a) { a.is_host_transfer = true; })},
      {"H721",
       entry("x = f32[2] parameter(0) s = (f32[2], f32[2], u32[]) copy-start(x) ROOT d = f32[2] copy-done(s)\n"),
       [](Module& m) { m.entry()->set_root(m.entry()->add_clone(find(m, "d"), {&find(m, "s")})); }},
      {"H722",
       entry("x = f32[4] parameter(0) ROOT y = f32[4] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add_f32\n",
             kAdd, ", replica_count=4"),
       change<CollectiveAttr>("y", [](CollectiveAttr& a) { a.groups.groups = {{0, 1}, {2, 1}}; })},
      {"H722",
       entry("x = f32[4] parameter(0) ROOT y = f32[8] all-gather(x), replica_groups=[1,2]<=[2], dimensions={0}\n", "",
             ", replica_count=2"),
       change<CollectiveAttr>("y", [](CollectiveAttr& a) { a.groups.iota.dims = {1ll << 62, 4}; })},
      {"H722",
       entry("x = f32[4] parameter(0) ROOT y = f32[4] collective-permute(x), source_target_pairs={{0,1}}\n", "",
             ", replica_count=2"),
       change<PermuteAttr>("y", [](PermuteAttr& a) { a.pairs.emplace_back(1, 1); })},
      {"H723", entry(send),
       [](Module& m) {
         find(m, "s").mutable_attr<TransferAttr>().channel_id = 0;
         find(m, "u").mutable_attr<TransferAttr>().channel_id = 0;
       }},
      {"H724", entry("x = f32[4] parameter(0) ROOT y = f32[4] custom-call(x), custom_call_target=\"t\"\n"),
       change<CustomCallAttr>("y", [](CustomCallAttr& a) { a.target.clear(); })},
      {"H724", entry("x = f32[4] parameter(0) ROOT y = f32[4] custom-call(x), custom_call_target=\"t\"\n"),
       change<CustomCallAttr>("y", [](CustomCallAttr& a) { a.operand_layouts.emplace(); })},
      {"H725",
       entry("t = token[] after-all() x = f32[2] parameter(0) p = (f32[2], token[]) tuple(x, t)\n"
             "ROOT y = f32[2] get-tuple-element(p), index=0\n"),
       [](Module& m) {
         Instruction& p = find(m, "p");
         m.entry()->add(Opcode::Copy, p.shape(), {&p});
       }},
      {"H726",
       entry("x = f32[2] parameter(0) b = b(f32[2]) custom-call(x), custom_call_target=\"Pin\"\n"
             "ROOT y = f32[2] custom-call(b), custom_call_target=\"Unpin\"\n"),
       [](Module& m) { find(m, "b").set_shape(Shape::buffer(f32({3}))); }},
      {"H727",
       entry("x = f32[4,2] parameter(0), sharding={devices=[2,1]<=[2]}\n ROOT y = f32[4,2] negate(x)\n", "",
             ", num_partitions=2"),
       [](Module& m) { find(m, "x").mutable_annotations().sharding->tile_dims = {2}; }},
      {"H728",
       entry("x = f32[4] parameter(0) n = s32[] parameter(1) ROOT y = f32[<=4] set-dimension-size(x, n), "
             "dimensions={0}\n"),
       set_dims("y", {1})},
      {"H729",
       entry("s = u64[2] parameter(0) ROOT y = (u64[2], u32[5]) rng-bit-generator(s), algorithm=rng_three_fry\n"),
       reshape("s", Shape::array(DType::U64, {3}))},
      {"H730", entry("x = f32[2,4]{1,0} parameter(0) ROOT y = f32[2,4]{1,0} negate(x)\n"),
       [](Module& m) { find(m, "y").set_shape(Shape::array(DType::F32, {2, 4}, Layout{{0, 0}, nullptr})); }},
      {"H730",
       entry("x = f32[2,4]{1,0} parameter(0) ROOT y = f32[2,4]{1,0} negate(x)\n"),
       [](Module& m) { find(m, "y").set_shape(Shape::array(DType::F32, {2, 4}, Layout{{0, 1}, nullptr})); },
       {.layout_sensitive = true}},
      {"H730",
       entry("x = f32[2,4]{1,0} parameter(0) ROOT y = f32[2,4]{1,0} negate(x)\n"),
       [](Module& m) {
         Shape s = find(m, "y").shape();
         s.clear_layout();
         find(m, "y").set_shape(s);
       },
       {.layout_sensitive = true}},
      {"H731", entry(add2, "", ", is_scheduled=true"),
       [](Module& m) { m.entry()->set_order({&find(m, "x"), &find(m, "z"), &find(m, "y")}); }},
      {"H731", entry(add2, "", ", is_scheduled=true"),
       [](Module& m) { find(m, "x").add_control_predecessor(&find(m, "y")); }},
      {"H732", entry(add2), [](Module& m) { m.config().aliases = {{{}, 0, {}, false}, {{}, 0, {}, false}}; }},
      {"H732", entry(add2),
       [](Module& m) {
         m.config().aliases = {{{}, 0, {}, false}};
         m.config().donors = {{0, {}}};
       }},
      {"H205", entry(add2), [](Module& m) { m.config().donors = {{0, {1}}}; }},
      {"H733",
       entry("x = f32[2] parameter(0) ROOT r = f32[2] call(x), to_apply=f, is_composite=true, "
             "frontend_attributes={composite.name=\"my.op\"}\n",
             "f { a = f32[2] parameter(0) ROOT n = f32[2] negate(a) }\n"),
       [](Module& m) { find(m, "r").mutable_annotations().frontend_attributes["composite.version"] = "-1"; }},
      {"H734",
       entry("x = f32[2] parameter(0) ROOT r = f32[2] domain(x), domain={kind=\"sharding\", entry={replicated}, "
             "exit={replicated}}\n"),
       change<DomainAttr>("r", [](DomainAttr& a) { a.kind = "colour"; })},
      {"H734", entry("x = f32[2] parameter(0) t = token[] after-all() ROOT r = f32[2] add-dependency(x, t)\n"),
       [](Module& m) { find(m, "r").replace_operand(1, &find(m, "x")); }},
      {"H735",
       entry("x = f32[2] parameter(0) ROOT r = f32[2] tanh(x), result_accuracy={tolerance={atol=0,rtol=0,ulps=2}}\n"),
       [](Module& m) { find(m, "r").mutable_annotations().result_accuracy->ulps = -1; }},
      {"H735", entry("x = f32[2] parameter(0) ROOT r = f32[2] tanh(x)\n"),
       [](Module& m) { find(m, "x").mutable_annotations().result_accuracy = ResultAccuracy(); }},
      {"H302", entry(add2), reshape("x", f32({1ll << 40, 1ll << 40}))},
      {"H302", entry(add2), reshape("x", Shape::array(DType::F64, {1ll << 62}))},
      {"H302", entry(add2), reshape("x", f32(Dims(65, 1)))},
      {"H302", entry(add2), reshape("x", f32({-5}))},
      {"H303", entry(add2), reshape("x", f32({Shape::kUnbounded}))},
  };
}

TEST(Verify, FindsEachRuleBroken) {
  for (const Case& c : cases()) {
    const auto module = parse(c.text);
    ASSERT_NE(module, nullptr) << c.text;
    EXPECT_EQ(messages(*module, c.options), "") << c.text;
    c.damage(*module);
    EXPECT_THAT(codes(*module, c.options), testing::Contains(c.code)) << c.text << messages(*module, c.options);
  }
}

TEST(Verify, HasACaseForEachCode) {
  std::map<std::string, int> count;
  for (const Case& c : cases()) ++count[c.code];
  for (int code = 701; code <= 735; ++code) EXPECT_GT(count["H" + std::to_string(code)], 0) << code;
}

TEST(Verify, NamesInstructionAndWhatIsWrong) {
  const auto module =
      parse(entry("x = f32[2,8] parameter(0) y = f32[8,3] parameter(1) ROOT dot.3 = f32[2,3] dot(x, y), "
                  "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"));
  find(*module, "dot.3").mutable_attr<DotAttr>().lhs_contracting = {0};
  EXPECT_EQ(messages(*module), "H713 dot.3: contracts dimension 0 of lhs (2) with 0 of rhs (8)");
  const auto found = verify(*module);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].instruction, &find(*module, "dot.3"));
  EXPECT_EQ(found[0].computation, module->entry());
}

TEST(Verify, StopsAtTheLimit) {
  const auto module = parse(entry("x = f32[4] parameter(0) ROOT t = (f32[4], f32[4]) tuple(x, x)\n"));
  for (int k = 0; k < 30; ++k) module->entry()->add(Opcode::Negate, f32({5}), {&find(*module, "x")});
  EXPECT_EQ(verify(*module).size(), 20u);
  EXPECT_EQ(verify(*module, {.max_diagnostics = 3}).size(), 3u);
}

TEST(Verify, LetsPrecisionsMixWhereAllowed) {
  const auto module = parse(entry("x = bf16[4] parameter(0) y = f32[4] parameter(1) ROOT z = f32[4] add(x, y)\n"));
  EXPECT_THAT(codes(*module), testing::ElementsAre("H701"));
  EXPECT_THAT(codes(*module, {.mixed_precision = true}), testing::IsEmpty());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

TEST(Verify, AcceptsAllConformanceModules) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(HLOOM_SOURCE_DIR "/tests/conformance")) {
    if (!file.path().string().ends_with(".cases.hlo")) continue;
    const std::string text = read(file.path());
    for (const text::ModuleText& part : text::split_modules(text)) {
      const auto module = parse(part.text);
      ASSERT_NE(module, nullptr) << file.path();
      EXPECT_EQ(messages(*module), "") << file.path() << ":" << part.first_line;
      ++count;
    }
  }
  EXPECT_GT(count, 1000);
}

}  // namespace
}  // namespace hloom::hlo
