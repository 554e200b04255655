// Rules for attributes of the common kinds: a member of a family struct that is a list, a number, a word …
#pragma once

#include "text/attribute_rules.h"
#include "text/enums.h"
#include "text/module_parser.h"
#include "text/print_words.h"

namespace hloom::text {

template <typename Member>
struct MemberOf;
template <typename Family_, typename Value_>
struct MemberOf<Value_ Family_::*> {
  using Family = Family_;
  using Value = Value_;
};

template <auto M>
auto& field(hlo::Instruction& i) {
  return i.mutable_attr<typename MemberOf<decltype(M)>::Family>().*M;
}
template <auto M>
const auto& field(const hlo::Instruction& i) {
  return i.attr<typename MemberOf<decltype(M)>::Family>().*M;
}

constexpr bool kRequired = true;

/// name={1,2}
template <auto M, bool required = false>
constexpr AttributeRule ints(std::string_view name) {
  return {name, required,
          [](ModuleParser& p, hlo::Instruction& i) { field<M>(i) = p.cursor().integers('{', '}', "an integer"); },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            write_braced(out, field<M>(i));
            return required || !field<M>(i).empty();
          }};
}

/// name=1
template <auto M, bool required = false, std::int64_t standard = 0, std::int64_t least = INT64_MIN>
constexpr AttributeRule number(std::string_view name) {
  return {name, required,
          [](ModuleParser& p, hlo::Instruction& i) {
            field<M>(i) = p.cursor().integer_between("the value", least, INT64_MAX);
          },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            write_integer(out, field<M>(i));
            return required || field<M>(i) != standard;
          }};
}

/// name=1 of an optional number
template <auto M, std::int64_t least>
constexpr AttributeRule optional_number(std::string_view name) {
  return {name, false,
          [](ModuleParser& p, hlo::Instruction& i) {
            field<M>(i) = p.cursor().integer_between("the value", least, INT64_MAX);
          },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            if (!field<M>(i)) return false;
            write_integer(out, *field<M>(i));
            return true;
          }};
}

/// name=0.5
template <auto M>
constexpr AttributeRule real(std::string_view name) {
  return {name, kRequired, [](ModuleParser& p, hlo::Instruction& i) { field<M>(i) = p.cursor().decimal("a number"); },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            write_double(out, field<M>(i));
            return true;
          }};
}

/// name=true; written if it is not the default
template <auto M, bool standard = false>
constexpr AttributeRule flag(std::string_view name) {
  return {name, false,
          [](ModuleParser& p, hlo::Instruction& i) { field<M>(i) = p.cursor().boolean("'true' or 'false'"); },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            out += field<M>(i) ? "true" : "false";
            return field<M>(i) != standard;
          }};
}

/// name="text"
template <auto M, bool required = false>
constexpr AttributeRule text_of(std::string_view name) {
  return {name, required, [](ModuleParser& p, hlo::Instruction& i) { field<M>(i) = p.cursor().string("a string"); },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            write_quoted(out, field<M>(i));
            return required || !field<M>(i).empty();
          }};
}

/// name={…} kept as it stands
template <auto M>
constexpr AttributeRule raw(std::string_view name) {
  return {name, false, [](ModuleParser& p, hlo::Instruction& i) { field<M>(i) = p.cursor().dictionary(); },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            out += field<M>(i);
            return !field<M>(i).empty();
          }};
}

/// Fails with H507 and the list of words.
void fail_enum(Cursor&, const char* at, std::string_view word, const std::vector<std::string_view>& valid);

/// Reads one of the words of an enumeration.
template <typename E>
E read_enum(Cursor& c) {
  const char* at = c.at();
  const std::string_view word = c.take_word("a word");
  for (const EnumWord<E>& w : words_of<E>())
    if (w.word == word) return w.value;
  std::vector<std::string_view> valid;
  for (const EnumWord<E>& w : words_of<E>()) valid.push_back(w.word);
  fail_enum(c, at, word, valid);
  return words_of<E>()[0].value;
}

/// name=WORD; the default is the first word
template <auto M, bool required = false>
constexpr AttributeRule keyword(std::string_view name) {
  return {name, required,
          [](ModuleParser& p, hlo::Instruction& i) {
            field<M>(i) = read_enum<typename MemberOf<decltype(M)>::Value>(p.cursor());
          },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle&) {
            out += word_of(field<M>(i));
            return required || field<M>(i) != words_of<typename MemberOf<decltype(M)>::Value>()[0].value;
          }};
}

/// name=computation; the n-th of those that the instruction calls
template <std::size_t n>
constexpr AttributeRule callee(std::string_view name) {
  return {name, kRequired,
          [](ModuleParser& p, hlo::Instruction& i) {
            hlo::Computation* computation = p.read_callee();
            if (computation == nullptr) return;
            std::vector<hlo::Computation*> called = i.called();
            if (called.size() <= n) called.resize(n + 1);
            called[n] = computation;
            i.set_called(std::move(called));
          },
          [](std::string& out, const hlo::Instruction& i, const WriteStyle& style) {
            if (i.called().size() <= n) return false;
            write_name(out, i.called(static_cast<std::int64_t>(n))->name(), style.percent);
            return true;
          }};
}

}  // namespace hloom::text
