// The languages that have colours: a row each. `keys`: a word before one of these characters names something.

const set = (text) => new Set(text.split(" "));
const C_LIKE = {line: ["//"], block: [["/*", "*/"]], constants: set("true false null nullptr NULL undefined NaN nil this self super"), capitals: true};
const C_WORDS = "break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct switch " +
    "typedef union volatile while";
const C_TYPES = set("auto bool char double float int long short signed unsigned void size_t ssize_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t " +
    "uint16_t uint32_t uint64_t uintptr_t intptr_t wchar_t string vector map byte");
const PREPROCESSOR = "^[ \\t]*#[ \\t]*[a-z]+";
const DECORATOR = "(?<![\\p{L}\\p{N}_.])@[\\p{L}_][\\p{L}\\p{N}_.]*";
const SHELL_VARIABLE = "\\$(?:\\{[^}\\n]*\\}?|[\\p{L}_][\\p{L}\\p{N}_]*|[@*#?$!\\d-])";
const JS_WORDS = "as async await break case catch class const continue debugger default delete do else export extends finally for from function get if " +
    "import in instanceof let new of return set static switch throw try typeof var void while with yield";

const ROWS = {
    "c h": {...C_LIKE, keywords: set(C_WORDS), types: C_TYPES, meta: [PREPROCESSOR]},
    "cpp c++ cc cxx hpp hh cuda cu arduino": {...C_LIKE, types: C_TYPES, meta: [PREPROCESSOR], keywords: set(`${C_WORDS} alignas alignof and catch class co_await ` +
        "co_return co_yield concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export final friend import module mutable " +
        "namespace new noexcept not operator or override private protected public reinterpret_cast requires static_assert static_cast template thread_local " +
        "throw try typename using virtual")},
    "javascript js jsx mjs cjs node": {...C_LIKE, strings: ['"', "'", "`"], keywords: set(JS_WORDS), meta: [DECORATOR]},
    "typescript ts tsx": {...C_LIKE, strings: ['"', "'", "`"], meta: [DECORATOR], types: set("any bigint boolean never number object string symbol unknown void"),
        keywords: set(`${JS_WORDS} abstract declare enum implements infer interface is keyof namespace private protected public readonly satisfies type`)},
    "java": {...C_LIKE, strings: ['"', "'", '"""'], meta: [DECORATOR], types: set("boolean byte char double float int long short void var"),
        keywords: set("abstract assert break case catch class const continue default do else enum extends final finally for if implements import instanceof " +
            "interface native new package permits private protected public record return sealed static switch synchronized throw throws transient try volatile while yield")},
    "kotlin kt kts": {...C_LIKE, strings: ['"', "'", '"""'], meta: [DECORATOR], keywords: set("abstract actual as break by catch class companion const " +
        "constructor continue crossinline data do else enum expect external final finally for fun get if import in infix init inline inner interface internal is " +
        "lateinit object open operator out override package private protected public reified return sealed set suspend tailrec throw try typealias val var vararg when where while")},
    "csharp cs c#": {...C_LIKE, types: set("bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort var void"),
        meta: [PREPROCESSOR], keywords: set("abstract as async await base break case catch checked class const continue default delegate do else enum event explicit " +
            "extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params partial private " +
            "protected public readonly record ref required return sealed set sizeof stackalloc static struct switch throw try typeof unsafe using value virtual volatile when where while with yield")},
    "go golang": {...C_LIKE, strings: ['"', "'", "`"], constants: set("true false nil iota"), types: set("any bool byte complex128 complex64 error float32 float64 " +
        "int int16 int32 int64 int8 rune string uint uint16 uint32 uint64 uint8 uintptr"), keywords: set("break case chan const continue default defer else " +
        "fallthrough for func go goto if import interface map package range return select struct switch type var")},
    "rust rs": {...C_LIKE, meta: ["#!?\\[[^\\]\\n]*\\]?", "'[\\p{L}_]+\\b(?!')", "[\\p{L}_]+!(?=[(\\[{])"], types: set("bool char f32 f64 i8 i16 i32 i64 " +
        "i128 isize str u8 u16 u32 u64 u128 usize"), keywords: set("as async await break const continue crate dyn else enum extern fn for if impl in let loop match " +
        "mod move mut pub ref return static struct trait type union unsafe use where while")},
    "swift": {...C_LIKE, strings: ['"', '"""'], meta: [DECORATOR], keywords: set("actor as async await break case catch class continue default defer deinit do else " +
        "enum extension fallthrough fileprivate for func get guard if import in indirect init inout internal is lazy let mutating open operator override private " +
        "protocol public repeat required rethrows return set some static struct subscript switch throw throws try typealias var weak where while")},
    "dart": {...C_LIKE, meta: [DECORATOR], types: set("bool double dynamic int num void"), keywords: set("abstract as assert async await break case catch class const " +
        "continue default deferred do else enum export extends extension factory final finally for get if implements import in is late library mixin new on " +
        "operator part required rethrow return set static switch sync throw try typedef var while with yield")},
    "scala": {...C_LIKE, strings: ['"', '"""'], meta: [DECORATOR], keywords: set("abstract case catch class def do else enum export extends extension final finally " +
        "for given if implicit import inline lazy match new object override package private protected return sealed then throw trait try type using val var while with yield")},
    "php": {...C_LIKE, line: ["//", "#"], meta: ["\\$[\\p{L}_][\\p{L}\\p{N}_]*", "<\\?(?:php)?|\\?>"], any_case: true, keywords: set("abstract and as break case catch class " +
        "clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global if implements include instanceof " +
        "interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while yield")},
    "python py python3 pycon": {line: ["#"], strings: ['"', "'", '"""', "'''"], meta: [DECORATOR], capitals: true, constants: set("True False None self cls"),
        keywords: set("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match " +
            "nonlocal not or pass raise return try while with yield"),
        types: set("bool bytes dict float frozenset int list object set str tuple")},
    "ruby rb": {line: ["#"], block: [["=begin", "=end"]], capitals: true, meta: ["(?<![:\\p{L}])[:@]{1,2}[\\p{L}_][\\p{L}\\p{N}_]*"], constants: set("true false nil self"),
        keywords: set("alias and begin break case class def defined? do else elsif end ensure extend for if in include module next not or private public raise redo " +
            "require rescue retry return super then undef unless until when while yield attr_accessor attr_reader")},
    "bash sh shell zsh console shellsession": {line: ["#"], plain: true, meta: [SHELL_VARIABLE, "(?<=\\s)--?[\\p{L}][\\p{L}\\p{N}-]*"], constants: set("true false"),
        keywords: set("break case continue do done elif else esac eval exec exit export fi for function if in local return select set shift source then trap unset until while " +
            "alias cd echo read sudo declare readonly")},
    "powershell ps1 pwsh": {line: ["#"], block: [["<#", "#>"]], any_case: true, meta: ["\\$[\\p{L}_][\\p{L}\\p{N}_:]*", "(?<=\\s)-[\\p{L}]+"], constants: set("true false null"),
        words: "[\\p{L}_][\\p{L}\\p{N}_-]*", keywords: set("begin break catch class continue do else elseif end enum exit filter finally for foreach function if in " +
            "param process return switch throw try until using while")},
    "sql postgresql postgres mysql sqlite plsql": {line: ["--"], block: [["/*", "*/"]], any_case: true, constants: set("true false null"), keywords: set("add all alter " +
        "analyze and any as asc begin between by cascade case check column commit conflict constraint create cross database default delete desc distinct do drop else " +
        "end exists explain foreign from full function grant group having if ilike in index inner insert intersect into is join key left like limit materialized not " +
        "nothing offset on or order outer over partition primary procedure references returning returns revoke right rollback row rows select set table then " +
        "to transaction trigger truncate union unique update using values view when where window with"),
        types: set("bigint boolean char date decimal double float int integer interval json jsonb numeric real serial smallint text timestamp timestamptz uuid varchar")},
    "json jsonc json5 jsonl": {line: ["//"], block: [["/*", "*/"]], strings: ['"'], keys: ":", plain: true, constants: set("true false null"), keywords: set("")},
    "yaml yml": {line: ["#"], keys: ":", plain: true, meta: ["(?<=\\s)[&*!][\\p{L}\\p{N}_./-]+", "^---$"], words: "[\\p{L}_][\\p{L}\\p{N}_./-]*",
        constants: set("true false null yes no on off ~"), keywords: set("")},
    "toml ini conf cfg properties dotenv env": {line: ["#", ";"], keys: "=", plain: true, meta: ["^[ \\t]*\\[[^\\]\\n]*\\]*"], strings: ['"', "'", '"""', "'''"],
        words: "[\\p{L}_][\\p{L}\\p{N}_.-]*", constants: set("true false"), keywords: set("")},
    "html xml svg xhtml vue svelte jinja": {block: [["<!--", "-->"]], strings: [], keys: "=", plain: true, words: "[\\p{L}_:@][\\p{L}\\p{N}_:@.-]*",
        meta: ["<[/!?]?[\\p{L}][\\p{L}\\p{N}:.-]*|[/?]?>", "(?<==)\"[^\"]*\"?|(?<==)'[^']*'?", "&[#\\p{L}][\\p{L}\\p{N}]{1,10};"],
        kind_of_meta: (found) => ("\"'".includes(found[0]) ? "string" : found[0] === "&" ? "number" : "keyword"), constants: set(""), keywords: set("")},
    "css scss sass less": {line: ["//"], block: [["/*", "*/"]], keys: ":", meta: ["#[\\da-fA-F]{3,8}\\b", "@[\\p{L}-]+", "[.#][\\p{L}_][\\p{L}\\p{N}_-]*", "--[\\p{L}\\p{N}_-]+|\\$[\\p{L}\\p{N}_-]+"],
        kind_of_meta: (found) => (/^#[\da-f]{3,8}$/i.test(found) ? "number" : found[0] === "@" ? "keyword" : found[0] === "." || found[0] === "#" ? "type" : "key"),
        words: "[\\p{L}_][\\p{L}\\p{N}_-]*", constants: set("auto none inherit initial unset"), keywords: set("")},
    "diff patch": {strings: [], plain: true, meta: ["^\\+.*$", "^-.*$", "^@@.*$", "^(?:diff|index) .*$"], words: "(?!)",
        kind_of_meta: (found) => ({"+": "added", "-": "removed"}[found[0]] ?? "keyword"), constants: set(""), keywords: set("")},
    "lua": {line: ["--"], block: [["--[[", "]]"]], constants: set("true false nil self"), keywords: set("and break do else elseif end for function goto if in local not or " +
        "repeat return then until while")},
    "haskell hs": {line: ["--"], block: [["{-", "-}"]], strings: ['"'], capitals: true, constants: set(""), keywords: set("case class data deriving do else foldr if import in " +
        "infix infixl infixr instance let module newtype of otherwise then type where qualified")},
    "r": {line: ["#"], strings: ['"', "'"], constants: set("TRUE FALSE NULL NA NaN Inf"), words: "[\\p{L}_.][\\p{L}\\p{N}_.]*", keywords: set("break else for function if in library " +
        "next repeat require return while")},
    "julia jl": {line: ["#"], block: [["#=", "=#"]], strings: ['"', '"""'], meta: [DECORATOR], capitals: true, constants: set("true false nothing missing"),
        keywords: set("abstract begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable " +
            "primitive quote return struct try type using where while")},
    "elixir ex exs": {line: ["#"], strings: ['"', '"""'], capitals: true, meta: ["(?<![:\\p{L}]):[\\p{L}_]+", DECORATOR], constants: set("true false nil"),
        keywords: set("after alias and case catch cond def defmodule defp defstruct do else end fn for if import in not or quote raise receive require rescue try " +
            "unless unquote use when with")},
    "perl pl": {line: ["#"], meta: ["[$@%][\\p{L}_][\\p{L}\\p{N}_:]*"], constants: set("undef"), keywords: set("and chomp die do else elsif for foreach if last local my next no " +
        "not or our package print return shift sub unless until use while")},
    "zig": {...C_LIKE, strings: ['"'], block: [], meta: ["@[\\p{L}]+"], types: set("bool f32 f64 i32 i64 isize type u8 u16 u32 u64 usize void anytype"),
        keywords: set("and asm break catch comptime const continue defer else enum errdefer error export extern fn for if inline or orelse packed pub return struct switch " +
            "test try union unreachable usingnamespace var while")},
    "dockerfile docker": {line: ["#"], plain: true, meta: [SHELL_VARIABLE], constants: set(""), keywords: set("ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL " +
        "MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR")},
    "makefile make mk": {line: ["#"], plain: true, keys: ":", meta: ["\\$[({][^)}\\n]*[)}]?|\\$[@<^?*]"], words: "[\\p{L}_.][\\p{L}\\p{N}_.%-]*", constants: set(""),
        keywords: set("define else endef endif export ifdef ifeq ifndef ifneq include override")},
    "cmake": {line: ["#"], strings: ['"'], any_case: true, meta: ["\\$\\{[^}\\n]*\\}?"], constants: set("on off true false"), keywords: set("if else elseif endif foreach " +
        "endforeach while endwhile function endfunction macro endmacro return include")},
    "latex tex": {line: ["%"], strings: [], plain: true, meta: ["\\\\(?:[\\p{L}]+|[^])"], kind_of_meta: () => "keyword", constants: set(""), keywords: set("")},
    "graphql protobuf proto": {line: ["#", "//"], strings: ['"', '"""'], keys: ":", capitals: true, plain: true, meta: [DECORATOR], constants: set("true false null"),
        keywords: set("enum extend fragment implements import input interface message mutation on oneof option package query repeated returns rpc scalar schema service " +
            "subscription syntax type union")},
};

const languages = new Map(Object.entries(ROWS).flatMap(([names, row]) => names.split(" ").map((name) => [name, row])));

// By a name that stands behind a fence; undefined where there is none.
export const language_of = (name) => languages.get(name.toLowerCase().replace(/^\.|^\{\.?|\}$/g, ""));
