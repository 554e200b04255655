// Kernels as text, and back.
//
//   std::string text = print(kernel);
//   Kernel same = TRY(parse(text));      // print(same) == text
//
// The grammar; NAME is letters, digits, '_', and '.' or '-' between them, or any characters in quotes; NUMBER is an
// integer; // begins a comment. Values are named where they are made, no two alike in a kernel.
//
//   kernel    = "kernel" NAME "(" arguments ")" [ "->" "(" arguments ")" ] [ "scratch" NUMBER [ TYPE ] ]
//               [ "blocks" NUMBER ] [ "cost" NUMBER ] [ "checked" ] ( "cut" NUMBER )* block      those after -> are written
//   argument  = NAME ":" ( TYPE | "bytes" ) "[" NUMBER "]" [ "align" NUMBER ] [ "written" ] [ "overlap" ]
//               [ "space" NUMBER ] ( "split" NUMBER ( "at" NUMBER )* )*
//   block     = "{" statement* "}"
//   statement = NAME "=" OPCODE TYPE operands [ attributes ]        compare: eq … lt, float totalorder signed unsigned
//             | NAME "=" "constant" TYPE ( number | "(" number "," number ")" )      number may be 0x bits
//             | NAME { "," NAME } "=" "transpose" TYPE NAME { "," NAME }
//             | NAME "=" "multiply-add" TYPE NAME "," NAME "," NAME
//             | NAME "=" "index" index
//             | NAME "=" "load" TYPE access [ "where" NAME ]
//             | "store" access "," NAME [ "where" NAME ] [ "streamed" ]
//             | "prefetch" TYPE access
//             | "for" NAME [ "until" NAME ] "in" bound ".." bound [ "block" NUMBER [ "after" NUMBER ] ] [ "by" NUMBER ] carries
//               "{" … next "}" results
//             | "while" carries block "test" NAME "do" "{" … next "}" results
//             | "if" NAME "{" … next "}" ( "else" "{" … next "}" )* results
//             | "call" NAME "(" pointers ")" [ "blocks" NUMBER ] [ "scratch" NUMBER ]
//   access    = ( NAME | "scratch" ) "[" index "]"
//   index     = terms as 3*i + j - 2
//   carries   = [ ( "carry" | "fold" OPCODE ) NAME "=" NAME ]*      inside = initial
//               ( "best" ( "greatest" | "least" ) ( "first" | "last" ) )*
//   next      = [ "next" NAME ("," NAME)* ]                         one for each carry, fold, best or result
//   results   = [ "->" NAME ("," NAME)* ]
//   pointer   = ( NAME | "scratch" ) [ "+" NUMBER ]                 bytes
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// The kernel as text that ends with a line break. Names that are missing, or that another has, get a number. Kernels
/// that print alike do alike. With `anonymous`, nothing of it depends on names that the kernel chose.
std::string print(const Kernel&, bool anonymous = false);

/// The kernel that `text` holds, its values numbered in the order in which they are made.
/// Errors: InvalidArgument, with line and column, if it does not parse or uses what is not made before.
///         What verify() checks is not checked.
Expected<Kernel> parse(std::string_view text);
/// All kernels of a text.
Expected<std::vector<Kernel>> parse_kernels(std::string_view text);

}  // namespace hloom::kernels
