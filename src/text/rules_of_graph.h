// Rules for attributes that say who takes part and who is called: groups, pairs, domains, computations.
#pragma once

#include "text/attribute_values.h"
#include "text/shardings.h"

namespace hloom::text::rules {

using namespace hlo;
using Out = std::string;
using Style = WriteStyle;

/// Whether the branches are called true_computation and false_computation.
inline bool has_named_branches(const Instruction& i) {
  return i.opcode() == Opcode::Conditional && i.called().size() == 2 && !i.operands().empty() &&
         i.operand(0)->shape().dtype() == DType::Pred;
}

/// Whether all groups of this collective have one size, and together all participants.
inline bool wants_even_groups(Opcode opcode) {
  return opcode == Opcode::AllGather || opcode == Opcode::AllGatherStart || opcode == Opcode::AllToAll ||
         opcode == Opcode::ReduceScatter || opcode == Opcode::RaggedAllToAll;
}

constexpr AttributeRule replica_groups() {
  return {"replica_groups", false,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            const char* at = c.at();
            ReplicaGroups& groups = i.mutable_attr<CollectiveAttr>().groups;
            groups = read_replica_groups(c);
            if (c.ok() && i.opcode() != Opcode::CollectiveBroadcast) check_no_gap(c, at, groups);
            if (c.ok() && wants_even_groups(i.opcode())) check_even(c, at, groups);
          },
          [](Out& out, const Instruction& i, const Style&) {
            write_replica_groups(out, i.attr<CollectiveAttr>().groups);
            return !i.attr<CollectiveAttr>().groups.empty();
          }};
}

// Accepted, and without effect.
constexpr AttributeRule mode() {
  return {"mode", false,
          [](ModuleParser& p, Instruction&) {
            if (p.cursor().at_string())
              p.cursor().string("a mode");
            else
              p.cursor().take_word("a mode");
          },
          [](Out&, const Instruction&, const Style&) { return false; }};
}

constexpr AttributeRule source_target_pairs() {
  return {"source_target_pairs", kRequired,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            c.list('{', '}', [&] {
              c.expect('{');
              const std::int64_t source = c.integer_between("a source", 0, INT64_MAX);
              c.expect(',');
              i.mutable_attr<PermuteAttr>().pairs.emplace_back(source, c.integer_between("a target", 0, INT64_MAX));
              c.expect('}');
            });
          },
          [](Out& out, const Instruction& i, const Style&) {
            out += '{';
            for (const auto& [source, target] : i.attr<PermuteAttr>().pairs) {
              if (out.back() == '}') out += ',';
              write_braced(out, {source, target});
            }
            out += '}';
            return true;
          }};
}

constexpr AttributeRule permute_slice_sizes() {
  return {"slice_sizes", false,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            c.list('{', '}',
                   [&] { i.mutable_attr<PermuteAttr>().slice_sizes.push_back(c.integers('{', '}', "a size")); });
          },
          [](Out& out, const Instruction& i, const Style&) {
            out += '{';
            for (const Dims& sizes : i.attr<PermuteAttr>().slice_sizes) {
              if (out.back() == '}') out += ',';
              write_braced(out, sizes);
            }
            out += '}';
            return !i.attr<PermuteAttr>().slice_sizes.empty();
          }};
}

constexpr AttributeRule domain() {
  return {"domain", kRequired,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            DomainAttr& d = i.mutable_attr<DomainAttr>();
            const auto key = [&](std::string_view wanted) {
              const char* at = c.at();
              if (c.take_key(wanted) != wanted) c.fail("H505", at, words("expected '", wanted, "='"));
            };
            c.expect('{');
            key("kind");
            d.kind = c.string("the kind of the domain");
            c.expect(',');
            key("entry");
            d.entry = read_sharding(c);
            c.expect(',');
            key("exit");
            d.exit = read_sharding(c);
            c.expect('}');
          },
          [](Out& out, const Instruction& i, const Style&) {
            const DomainAttr& d = i.attr<DomainAttr>();
            out += "{kind=";
            write_quoted(out, d.kind);
            out += ", entry=";
            write_sharding(out, d.entry);
            out += ", exit=";
            write_sharding(out, d.exit);
            out += '}';
            return true;
          }};
}

// {a, b}; of a custom call or of the branches of a conditional.
template <bool required>
constexpr AttributeRule callees(std::string_view name) {
  return {name, required,
          [](ModuleParser& p, Instruction& i) {
            std::vector<Computation*> called;
            p.cursor().list('{', '}', [&] { called.push_back(p.read_callee()); });
            if (p.cursor().ok()) i.set_called(std::move(called));
          },
          [](Out& out, const Instruction& i, const Style& style) {
            if (i.called().empty() || (required && has_named_branches(i))) return false;
            out += '{';
            const char* comma = "";
            for (const Computation* c : i.called()) {
              out += comma;
              write_name(out, c->name(), style.percent);
              comma = ", ";
            }
            out += '}';
            return true;
          }};
}

// true_computation and false_computation of a conditional on a pred.
template <std::size_t n>
constexpr AttributeRule branch(std::string_view name) {
  AttributeRule rule = callee<n>(name);
  rule.write = [](Out& out, const Instruction& i, const Style& style) {
    if (!has_named_branches(i)) return false;
    write_name(out, i.called(static_cast<std::int64_t>(n))->name(), style.percent);
    return true;
  };
  return rule;
}

// Of the links of a chain it is written if it is not the default; they take it from their start.
constexpr AttributeRule execution_thread() {
  return {"async_execution_thread", false,
          [](ModuleParser& p, Instruction& i) {
            i.mutable_attr<AsyncAttr>().execution_thread = p.cursor().string("the name of a thread");
          },
          [](Out& out, const Instruction& i, const Style&) {
            write_quoted(out, i.attr<AsyncAttr>().execution_thread);
            return i.attr<AsyncAttr>().execution_thread != "main";
          }};
}

// calls=… of the links of an asynchronous chain in older texts: their start says it.
constexpr AttributeRule repeated_callee() {
  return {"calls", false, [](ModuleParser& p, Instruction&) { p.read_callee(); },
          [](Out&, const Instruction&, const Style&) { return false; }};
}

constexpr AttributeRule parameter_replication() {
  return {"parameter_replication", false,
          [](ModuleParser& p, Instruction& i) {
            Cursor& c = p.cursor();
            c.list('{', '}',
                   [&] { i.mutable_attr<ParameterAttr>().replication.push_back(c.boolean("'true' or 'false'")); });
          },
          [](Out& out, const Instruction& i, const Style&) {
            out += '{';
            for (const bool b : i.attr<ParameterAttr>().replication)
              out.append(out.back() == '{' ? "" : ",").append(b ? "true" : "false");
            out += '}';
            return !i.attr<ParameterAttr>().replication.empty();
          }};
}

}  // namespace hloom::text::rules
