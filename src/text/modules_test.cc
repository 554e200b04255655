// Modules: forms, order of computations, names, single instructions, several in a file, what is printed when.
#include <gtest/gtest.h>

#include <string>

#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

using hlo::Instruction;
using hlo::Opcode;

std::unique_ptr<hlo::Module> parse(std::string_view text, ParseOptions options = {}) {
  auto module = parse_module(text, options);
  EXPECT_TRUE(module) << module.error().message() << '\n' << text;
  return module ? *std::move(module) : std::make_unique<hlo::Module>("none");
}

std::vector<std::string> names_of(const hlo::Module& module) {
  std::vector<std::string> names;
  for (const hlo::Computation& c : module.computations()) names.push_back(c.name());
  return names;
}

std::vector<std::string> instructions_of(const hlo::Computation& computation) {
  std::vector<std::string> names;
  for (const Instruction& i : computation.instructions()) names.push_back(i.name());
  return names;
}

using Names = std::vector<std::string>;

TEST(Modules, WithoutHeader) {
  const auto m = parse("ENTRY e { a = s32[] parameter(0)  ROOT b = s32[] add(a, a) }");
  EXPECT_EQ(m->name(), "module_e");
  EXPECT_FALSE(m->config().is_scheduled);
  const auto last = parse("a { p = f32[] parameter(0) }\nb (q: f32[]) -> f32[] { q = f32[] parameter(0) }");
  EXPECT_EQ(last->entry()->name(), "b");  // the last one if none is marked
  EXPECT_EQ(parse("f (q: f32[]) -> f32[] { q = f32[] parameter(0) }")->name(), "module_f");
  EXPECT_EQ(parse("HloModule %m:\nENTRY e { a = s32[] parameter(0) }")->name(), "m");
}

TEST(Modules, ASingleInstruction) {
  const auto m = parse("sum = f32[10] add(f32[10] lhs, f32[10] rhs)");
  EXPECT_TRUE(m->config().is_scheduled);
  EXPECT_EQ(instructions_of(*m->entry()), (Names{"lhs", "rhs", "sum"}));
  EXPECT_EQ(m->entry()->root()->opcode(), Opcode::Add);
  EXPECT_EQ(parse("s = f32[4] add(f32[4] a, f32[4] a)")->entry()->parameters().size(), 1u);
  EXPECT_EQ(instructions_of(*parse("f32[4] add(f32[4], f32[4])")->entry()), (Names{"_0", "_1", "add"}));
  EXPECT_EQ(instructions_of(*parse("ROOT add(f32[4], f32[4] %x), metadata={op_type=\"a\"}")->entry()),
            (Names{"_0", "x", "add"}));
  EXPECT_EQ(
      parse("r = reduce(f32[4] a, f32[] z), dimensions={0}, to_apply={ l = f32[] parameter(0) h = f32[] parameter(1) "
            "ROOT s = f32[] add(l, h) }")
          ->num_computations(),
      2);
  EXPECT_FALSE(parse_module("r = f32[4] negate(a)"));
}

// Computations stand in any order; in the module callees come first.
TEST(Modules, ForwardReferences) {
  const auto m = parse(
      "ENTRY e { a = f32[] parameter(0)\n b = f32[] call(a), to_apply=g\n ROOT c = call(b), to_apply=f }\n"
      "f (x: f32[]) -> f32[] { x = f32[] parameter(0)\n ROOT y = call(x), to_apply=g }, execution_thread=\"host\"\n"
      "g { ROOT z = f32[] parameter(0) }\n");
  EXPECT_EQ(names_of(*m), (Names{"g", "f", "e"}));
  EXPECT_EQ(m->entry()->name(), "e");
  EXPECT_EQ(m->computations()[1].execution_thread(), "host");
  EXPECT_TRUE(equal(*m, *parse(print(*m))));
  // Places are those of the text.
  EXPECT_EQ(m->computations()[0].root()->line(), 6);
  EXPECT_EQ(m->computations()[1].root()->line(), 5);
  EXPECT_EQ(m->entry()->root()->line(), 3);
  EXPECT_EQ(m->entry()->root()->column(), 11);
  // The order of a text that has callees first is kept.
  EXPECT_EQ(
      names_of(*parse("b { p = f32[] parameter(0) }\na { p = f32[] parameter(0) }\nENTRY e { p = f32[] parameter(0) }\n"
                      "c { p = f32[] parameter(0) }")),
      (Names{"b", "a", "e", "c"}));
  EXPECT_FALSE(
      parse_module("a { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=b }\n"
                   "ENTRY b { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=a }"));
}

TEST(Modules, InlineBodies) {
  const auto m = parse(
      "ENTRY m { a = f32[9] parameter(0) z = f32[] constant(0)\n"
      "  r = f32[] reduce(a, z), dimensions={0}, to_apply={ l = f32[] parameter(0) h = f32[] parameter(1) ROOT s = "
      "f32[] add(l, h) }\n"
      "  ROOT w = f32[] while(r), condition={ l = f32[] parameter(0) ROOT t = pred[] constant(true) }, body={ ROOT l = "
      "f32[] parameter(0) } }");
  EXPECT_EQ(names_of(*m), (Names{"_", "_.1", "_.2", "m"}));
  EXPECT_TRUE(equal(*m, *parse(print(*m))));
}

// A name of two computations is made unique in the module.
TEST(Modules, NamesBecomeUnique) {
  const auto m = parse(
      "f { x = f32[] parameter(0)\n y.1 = f32[] negate(x) }\n"
      "ENTRY e { x = f32[] parameter(0)\n y.1 = f32[] call(x), to_apply=f\n y.2 = f32[] sine(y.1) }");
  EXPECT_EQ(instructions_of(*m->entry()), (Names{"x.1", "y.2", "y.3"}));
  EXPECT_EQ(m->entry()->root()->operand(0)->name(), "y.2");
  EXPECT_EQ(m->entry()->root()->operand(0)->opcode(), Opcode::Call);
}

TEST(Modules, NestedOperandsAndElements) {
  const auto m = parse(
      "ENTRY e { p = ((f32[4], f32[4]), f32[4]) parameter(0)\n  y = add(p#0#1, multiply(p#1, f32[4] %p#1))\n"
      "  ROOT t = tuple(p#0, multiply(y, y)) }");
  EXPECT_EQ(instructions_of(*m->entry()),
            (Names{"p", "p_0", "p_0_1", "p_1", "multiply.anon", "y", "multiply.anon.1", "t"}));
  EXPECT_EQ(to_string(m->entry()->root()->shape(), false), "((f32[4], f32[4]), f32[4])");
  EXPECT_TRUE(equal(*m, *parse(print(*m))));
}

TEST(Modules, ShapesThatFollow) {
  const auto shape = [](std::string_view operation) {
    const auto m = parse(
        "c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\nENTRY e {\n"
        "  p = f32[4,3] parameter(0)\n  z = f32[] constant(0)\n  q = pred[4,3] parameter(1)\n ROOT r = " +
        std::string(operation) + "\n}");
    return to_string(m->entry()->root()->shape());
  };
  EXPECT_EQ(shape("add(p, p)"), "f32[4,3]{1,0}");
  EXPECT_EQ(shape("compare(p, p), direction=LT"), "pred[4,3]{1,0}");
  EXPECT_EQ(shape("transpose(p), dimensions={1,0}"), "f32[3,4]{1,0}");
  EXPECT_EQ(shape("reduce(p, z), dimensions={0}, to_apply=c"), "f32[3]{0}");
  EXPECT_EQ(shape("dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}"), "f32[3,3]{1,0}");
  EXPECT_EQ(shape("tuple(p, z)"), "(f32[4,3]{1,0}, f32[])");
  EXPECT_EQ(shape("call(z, z), to_apply=c"), "f32[]");
  EXPECT_EQ(shape("select(q, p, p)"), "f32[4,3]{1,0}");
}

// The short form of asynchronous operations means the long one.
TEST(Modules, AsyncSugar) {
  const auto m = parse(
      "ENTRY e {\n  x = f32[64]{0} parameter(0)\n"
      "  s = ((f32[64]{0}), f32[64]{0}, u32[]) custom-call-start(f32[64]{0} x), custom_call_target=\"work\", "
      "async_execution_thread=\"pool\"\n"
      "  u = ((f32[64]{0}), f32[64]{0}, u32[]) custom-call-update(s)\n  ROOT d = f32[64]{0} custom-call-done(u)\n}\n");
  const Instruction& done = *m->entry()->root();
  EXPECT_EQ(done.opcode(), Opcode::AsyncDone);
  EXPECT_EQ(done.attr<hlo::AsyncAttr>().execution_thread, "pool");
  const Instruction& start = *done.operand(0)->operand(0);
  ASSERT_EQ(start.opcode(), Opcode::AsyncStart);
  EXPECT_EQ(start.to_apply()->root()->attr<hlo::CustomCallAttr>().target, "work");
  EXPECT_EQ(instructions_of(*start.to_apply()), (Names{"async_param", "custom-call"}));
  const std::string plain = print(*m), sugar = print(*m, PrintOptions::dump());
  EXPECT_NE(plain.find("async-start("), std::string::npos);
  EXPECT_NE(sugar.find("custom-call-start(%x), async_execution_thread=\"pool\", custom_call_target=\"work\""),
            std::string::npos)
      << sugar;
  EXPECT_EQ(sugar.find("wrapped"), std::string::npos) << sugar;
  EXPECT_TRUE(equal(*m, *parse(plain)));
  EXPECT_EQ(print(*parse(sugar), PrintOptions::dump()), sugar);
}

TEST(Modules, SeveralInAFile) {
  constexpr std::string_view kText =
      "// -----\n// first\nHloModule a\nENTRY e { ROOT p = f32[] parameter(0) }\n// -----  \n"
      "HloModule b\nENTRY e { ROOT q = s32[] parameter(0) }\n// -----\n\n// nothing here\n";
  const auto pieces = split_modules(kText);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].name, "a");
  EXPECT_EQ(pieces[1].name, "b");
  EXPECT_EQ(pieces[1].first_line, 5);
  const auto modules = parse_modules(kText);
  ASSERT_TRUE(modules);
  EXPECT_EQ((*modules)[1]->entry()->root()->line(), 7);
  const auto alone = parse(pieces[1].text, {.first_line = pieces[1].first_line});
  EXPECT_EQ(alone->entry()->root()->line(), 7);
  EXPECT_FALSE(parse_module(kText));
  EXPECT_EQ(split_modules("HloModule m // ----- \n x // -----\n").size(), 1u);  // only on a line of its own
}

TEST(Modules, HeaderRoundTrip) {
  constexpr std::string_view kText =
      "HloModule step, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias) }, buffer_donor={ (0, {}) }, "
      "alias_passthrough_params=true, entry_computation_layout={(f32[8,16]{0,1}, f32[16]{0})->(f32[16]{0}, f32[])}, "
      "allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output={true}, "
      "replica_count=2, num_partitions=4, frontend_attributes={opts={\"x\":{\"y\":1}},owner=\"a\\\"b\"}, "
      "origin_recovery_table={{\"a\" {0}} : {\"b\"}, \"HloModule r\" {\"c\"} : {}}, debug_attributes={{\"p\"}: "
      "({default})}\n";
  const auto m = parse(std::string(kText) +
                       "\nENTRY m {\n  a = f32[8,16] parameter(0)\n  b = f32[16] parameter(1)\n"
                       "  z = f32[] constant(0)\n  ROOT t = (f32[16], f32[]) tuple(b, z)\n}\n");
  const std::string printed = print(*m);
  EXPECT_EQ(printed.substr(0, kText.size()), kText);
  EXPECT_TRUE(equal(*m, *parse(printed)));
}

TEST(Modules, HeaderDefaults) {
  const auto plain = parse("HloModule m\nENTRY e { p = f32[2,3]{0,1} parameter(0) }");
  EXPECT_TRUE(plain->config().has_entry_layout);
  EXPECT_EQ(to_string(plain->config().entry_parameters[0]), "f32[2,3]{0,1}");
  EXPECT_EQ(to_string(plain->config().entry_result), "f32[2,3]{0,1}");
  const auto written = parse(
      "HloModule m, is_scheduled=false, replica_count=1, num_partitions=1, input_output_alias={}, buffer_donor={}, "
      "alias_passthrough_params=false, allow_spmd_sharding_propagation_to_output=false, "
      "allow_spmd_sharding_propagation_to_parameters={false}, frontend_attributes={}, "
      "entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}\n\nENTRY e { p = f32[2,3]{0,1} parameter(0) }");
  EXPECT_TRUE(equal(*plain, *written));
  EXPECT_TRUE(parse("HloModule m, entry_computation_layout={(f32[2])->f32[2]{0}}\nENTRY e { p = f32[2] parameter(0) }")
                  ->config()
                  .entry_parameters[0]
                  .has_layout());
  EXPECT_FALSE(parse("HloModule m, entry_computation_layout={(f32[2])->f32[2]{0}}\nENTRY e { p = f32[2] parameter(0) }",
                     {.keep_module_auto_layouts = true})
                   ->config()
                   .entry_parameters[0]
                   .has_layout());
}

TEST(Modules, SourceTables) {
  constexpr std::string_view kTables =
      "\nFileNames\n1 \"model.py\"\n\nFunctionNames\n1 \"train\"\n2 \"loss\"\n\nFileLocations\n"
      "1 {file_name_id=1 function_name_id=1 line=40 end_line=40 column=4 end_column=19}\n"
      "2 {file_name_id=1 function_name_id=2 line=12 end_line=13 column=8 end_column=30}\n\n"
      "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n";
  const auto m = parse("HloModule m\n" + std::string(kTables) + "\nENTRY e { p = f32[] parameter(0) }");
  EXPECT_EQ(m->config().tables.frames[0].parent, 0);
  EXPECT_EQ(m->config().tables.frames[1].parent, 1);
  EXPECT_NE(print(*m).find(kTables), std::string::npos) << print(*m);
  EXPECT_TRUE(equal(*m, *parse(print(*m))));
  EXPECT_EQ(print(*m, PrintOptions::short_parsable()).find("FileNames"), std::string::npos);
  EXPECT_TRUE(
      equal(*m, *parse("HloModule m\nFileNames 1 \"model.py\" FunctionNames 1 'train' 2 'loss' FileLocations "
                       "1 {function_name_id=1, file_name_id=1, line=40, end_line=40, column=4, end_column=19} "
                       "2 {file_name_id=1 function_name_id=2 line=12 end_line=13 column=8 end_column=30} "
                       "StackFrames 1 {parent_frame_id=1 file_location_id=1} 2 {file_location_id=2 parent_frame_id=2}\n"
                       "ENTRY e { p = f32[] parameter(0) }")));
  EXPECT_TRUE(parse("HloModule m\nFileNames FunctionNames FileLocations StackFrames ENTRY e { p = f32[] parameter(0) }")
                  ->config()
                  .tables.present);
}

// A module that was built, not read.
TEST(Modules, BuiltByHand) {
  hlo::Module m("built");
  hlo::Computation* e = m.add_computation("main");
  m.set_entry(e);
  Instruction* p = e->add_parameter(0, Shape::array(DType::F32, {2, 3}), "p");
  Instruction* t = e->add_transpose(p, {1, 0});
  e->set_root(e->add_tuple({t, p}));
  EXPECT_EQ(print(m),
            "HloModule built\n\nENTRY %main (p: f32[2,3]) -> (f32[3,2], f32[2,3]) {\n"
            "  %p = f32[2,3]{1,0} parameter(0)\n  %transpose = f32[3,2]{1,0} transpose(%p), dimensions={1,0}\n"
            "  ROOT %tuple = (f32[3,2]{1,0}, f32[2,3]{1,0}) tuple(%transpose, %p)\n}\n");
  EXPECT_TRUE(equal(m, *parse(print(m))));
}

TEST(Modules, PrintOptions) {
  const auto m = parse(
      "HloModule m\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  c = f32[12]{0} constant({1,2,3,4,5,6,7,8,9,10,11,12})\n"
      "  ROOT t = (f32[2]{0}, f32[2]{0}) tuple(p, p), metadata={op_name=\"n\"}, backend_config={\"a\":1}, "
      "control-predecessors={c}\n}");
  const auto root = [&](const PrintOptions& options) { return print(*m->entry()->root(), options); };
  EXPECT_EQ(root({}),
            "%t = (f32[2]{0}, f32[2]{0}) tuple(%p, %p), control-predecessors={%c}, metadata={op_name=\"n\"}, "
            "backend_config={\"a\":1}");
  EXPECT_EQ(root(PrintOptions::short_parsable()), "t = (f32[2]{0}, f32[2]{0}) tuple(p, p)");
  EXPECT_EQ(root({.percent = false, .operand_shapes = true, .metadata = false, .backend_config = false}),
            "t = (f32[2]{0}, f32[2]{0}) tuple(f32[2]{0} p, f32[2]{0} p), control-predecessors={c}");
  EXPECT_EQ(root({.metadata = false, .backend_config = false, .control_predecessors = false, .layouts = false}),
            "%t = (f32[2], f32[2]) tuple(%p, %p)");
  EXPECT_NE(print(*m, PrintOptions::dump()).find("constant({...})"), std::string::npos);
  EXPECT_NE(print(*m).find("constant({1, 2, 3"), std::string::npos);
}

}  // namespace
}  // namespace hloom::text
