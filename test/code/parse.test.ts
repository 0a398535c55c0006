import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { LanguageId } from "../../src/code/languages.ts"
import { type CodeParser, openParser } from "../../src/code/parse.ts"
import type { FileFacts } from "../../src/core/code.ts"

let parser: CodeParser
beforeAll(async () => {
  parser = await openParser()
})
afterAll(() => parser.close())

const read = async (language: LanguageId, text: string): Promise<FileFacts> => (await parser.parse(language, text))!

/** `12 method Door.open, exported, deprecated: use knock | Opens the door.` */
function definitions(facts: FileFacts): string[] {
  return facts.definitions.map(({ line, kind, container, name, exported, deprecated, doc }) => {
    const marks = [
      exported === "default" ? ", default" : exported ? ", exported" : "",
      deprecated === undefined ? "" : `, deprecated: ${deprecated}`,
      doc === undefined ? "" : ` | ${doc}`,
    ]
    return `${line} ${kind} ${container === undefined ? "" : `${container}.`}${name}${marks.join("")}`
  })
}
const imports = (facts: FileFacts) =>
  facts.imports.map(
    ({ line, module, name, as, reexport }) => `${line} ${name} as ${as} from ${module}${reexport ? ", on" : ""}`,
  )
const uses = (facts: FileFacts) =>
  facts.uses.map(
    ({ line, kind, receiver, name, container }) =>
      `${line} ${kind} ${receiver === undefined ? "" : `${receiver}.`}${name}${container === undefined ? "" : ` in ${container}`}`,
  )

describe("TypeScript", () => {
  test("finds definitions with their container, export, first sentence and deprecation", async () => {
    const facts = await read(
      "typescript",
      `/**
 * Opens the door. Waits until it is open.
 * @deprecated use knock
 */
export async function open(name: string): Promise<void> {}

// Helps.
function helper() { const local = 1; return local }
export default class Door<T> extends Base {
  /** Turns the handle. */
  @memo() turn(): void {}
  private close = () => {}
  constructor() { super(); this.later = () => {} }
  get state() { return 1 }
}
export interface Lock { key(a: string): void; bolts: number }
export type Size = "small" | "large"
export enum Colour { Red }
export const limit = 1, twice = (n: number) => 2 * n
let table = { row() {} }
namespace Inner { export const deep = 2 }
declare function ambient(): void
abstract class Frame { abstract fit(): void }
for (const i of []) { const inBlock = i }
// eslint-disable-next-line
const quiet = 1 // Not about the next one.
const next = 2
`,
    )
    expect(facts.has_errors).toBe(false)
    expect(definitions(facts)).toEqual([
      "5 function open, exported, deprecated: use knock | Opens the door.",
      "8 function helper | Helps.",
      "9 class Door, default",
      "11 method Door.turn | Turns the handle.",
      "12 method Door.close",
      "13 method Door.constructor",
      "13 method constructor.later",
      "14 method Door.state",
      "16 interface Lock, exported",
      "16 method Lock.key",
      "17 type Size, exported",
      "18 enum Colour, exported",
      "19 constant limit, exported",
      "19 function twice, exported",
      "20 variable table",
      "20 method table.row",
      "21 module Inner",
      "21 constant Inner.deep, exported",
      "22 function ambient",
      "23 class Frame",
      "23 method Frame.fit",
      "26 constant quiet",
      "27 constant next",
    ])
    expect(facts.definitions.find(({ name }) => name === "Door")).toMatchObject({ line: 9, end_line: 15 })
  })

  test("finds imports, re-exports and require", async () => {
    const facts = await read(
      "typescript",
      `import fs, { readFileSync as load, type Stats } from "node:fs"
import * as path from "./path.ts"
import "./side.ts"
export { a as b } from "./a.ts"
export * from "./all.ts"
export * as space from "./space.ts"
import old = require("./old")
const lib = require("./lib")
const { x, y: z } = require("./xy")
const notOne = load("./file")
`,
    )
    expect(imports(facts)).toEqual([
      "1 default as fs from node:fs",
      "1 readFileSync as load from node:fs",
      "1 Stats as Stats from node:fs",
      "2 * as path from ./path.ts",
      "3  as  from ./side.ts",
      "4 a as b from ./a.ts, on",
      "5 * as * from ./all.ts, on",
      "6 * as space from ./space.ts, on",
      "7 * as old from ./old",
      "8 * as lib from ./lib",
      "9 x as x from ./xy",
      "9 y as z from ./xy",
    ])
    expect(definitions(facts)).toEqual(["10 constant notOne"])
    expect(uses(facts)).toEqual(["10 call load in notOne"])
  })

  test("finds each call and reference once for every definition that contains it", async () => {
    const facts = await read(
      "typescript",
      `import { save, type Row, Table } from "./store.ts"
import * as names from "./names.ts"
export function write(row: Row) {
  save(row); save(row)
  const kept = save
  names.join(row, names.MAX)
  new Table().put(row)
  row.cells.forEach((cell) => check(cell))
}
class Sheet extends Table {
  run() { this.draw(); write(null!) }
  draw() {}
}
`,
    )
    expect(uses(facts)).toEqual([
      "3 reference Row in write",
      "4 call save in write",
      "6 call names.join in write",
      "6 reference names.MAX in write",
      "7 call Table in write",
      "7 call ?.put in write",
      "8 call row.cells.forEach in write",
      "8 call check in write",
      "10 reference Table in Sheet",
      "11 call this.draw in run",
      "11 call write in run",
    ])
  })

  test("counts rendering a component as a call, but not an HTML tag", async () => {
    const facts = await read("tsx", `const App = () => <Panel a={1}><div/></Panel>\nfunction Panel() { return null }\n`)
    expect(uses(facts)).toEqual(["1 call Panel in App"])
  })
})

test("JavaScript: assignments to exports and to a prototype are definitions", async () => {
  const facts = await read(
    "javascript",
    `exports.load = function () { parse() }
Reader.prototype.run = function () {}
class Writer { flush = () => {} }
function setUp(button) { button.onclick = () => {} }
a.b.c = () => {}
`,
  )
  expect(definitions(facts)).toEqual([
    "1 function load, exported",
    "2 method Reader.run",
    "3 class Writer",
    "3 method Writer.flush",
    "4 function setUp",
  ])
})

test("Python: finds docstrings, decorators, three forms of deprecation, and only the file's own variables", async () => {
  const facts = await read(
    "python",
    `"""About this file."""
import os.path as p, sys, a.b
from .pkg import mod, thing as t
from x import *
LIMIT = 1
first, second = 1, 2
if LIMIT:
    late = 3
LIMIT = 2
@deprecated("use g")
def f(a):
    """Does f. Really."""
    local = 1
    g(a); p.join(); t()
class C(Base):
    """A class."""
    attribute = 1
    @property
    def h(self): return self.k()
    def k(self):
        """
        Old thing.

        .. deprecated:: 3.1 use h
        """
def warned():
    warnings.warn("gone soon", DeprecationWarning, 2)
def careful(x):
    if x:
        warnings.warn("x is going", DeprecationWarning, 2)
async def _co(): await f(LIMIT)
`,
  )
  expect(definitions(facts)).toEqual([
    "5 constant LIMIT, exported",
    "6 variable first, exported",
    "6 variable second, exported",
    "8 variable late, exported",
    "11 function f, exported, deprecated: use g | Does f.",
    "15 class C, exported | A class.",
    "19 method C.h, exported",
    "20 method C.k, exported, deprecated: 3.1 use h | Old thing.",
    "26 function warned, exported, deprecated: ",
    "28 function careful, exported",
    "31 function _co",
  ])
  expect(imports(facts)).toEqual([
    "2 * as p from os.path",
    "2 * as sys from sys",
    "2 * as a.b from a.b",
    "3 mod as mod from .pkg",
    "3 thing as t from .pkg",
    "4 * as * from x, on",
  ])
  expect(uses(facts)).toEqual(
    expect.arrayContaining(["14 call g in f", "14 call p.join in f", "14 call t in f", "19 call self.k in h"]),
  )
})

test("Go: finds receivers, groups, several names on one line, and Deprecated paragraphs", async () => {
  const facts = await read(
    "go",
    `package main
import (
	"fmt"
	yaml "gopkg.in/yaml.v3"
	"example.com/app/store/v2"
)
// Server serves.
//
// Deprecated: use Server2.
type Server[T any] struct { a int }
type Doer interface { Do() error }
type Alias = int
const (
	// One is one.
	One = iota
	two, three
)
var V, w = 1, 2
// Run runs.
func (s *Server[T]) Run(a store.Row) { fmt.Println(One); s.stop(); helper() }
func helper() {}
`,
  )
  expect(definitions(facts)).toEqual([
    "10 struct Server, exported, deprecated: use Server2. | Server serves.",
    "11 interface Doer, exported",
    "11 method Doer.Do, exported",
    "12 type Alias, exported",
    "15 constant One, exported | One is one.",
    "16 constant two",
    "16 constant three",
    "18 variable V, exported",
    "18 variable w",
    "20 method Server.Run, exported | Run runs.",
    "21 function helper",
  ])
  expect(imports(facts)).toEqual([
    "3 * as fmt from fmt",
    "4 * as yaml from gopkg.in/yaml.v3",
    "5 * as store from example.com/app/store/v2",
  ])
  expect(uses(facts)).toEqual([
    "20 reference Server in Run",
    "20 reference store.Row in Run",
    "20 call fmt.Println in Run",
    "20 reference One in Run",
    "20 call s.stop in Run",
    "20 call helper in Run",
  ])
})

test("Rust: finds definitions with their attributes, and imports", async () => {
  const facts = await read(
    "rust",
    `use std::io::Read;
/// A point. With more.
#[derive(Debug)]
#[deprecated(note = "use Spot")]
pub struct Point { x: i32 }
impl Point {
    /// Makes one.
    pub fn new() -> Self { Point { x: 0 } }
}
pub trait Shape { fn area(&self) -> f64; }
const SIDES: i32 = 4;
macro_rules! square { () => {} }
mod inner { pub fn deep() {} }
`,
  )
  expect(definitions(facts)).toEqual([
    "5 struct Point, exported, deprecated: use Spot | A point.",
    "8 method Point.new, exported | Makes one.",
    "10 trait Shape, exported",
    "10 method Shape.area",
    "11 constant SIDES",
    "12 macro square",
    "13 module inner",
    "13 function inner.deep, exported",
  ])
  expect(imports(facts)).toEqual(["1 * as * from std::io::Read"])
})

test("Java and C#: finds definitions with their annotations and attributes", async () => {
  const java = await read(
    "java",
    `import java.util.List;
/** A car. */
@Deprecated
public class Car {
  /** Drives. */
  @Override
  public void drive() {}
  Car() {}
}
interface Wheel { void turn(); }
`,
  )
  expect(definitions(java)).toEqual([
    "4 class Car, exported, deprecated:  | A car.",
    "7 method Car.drive, exported | Drives.",
    "8 method Car.Car",
    "10 interface Wheel",
    "10 method Wheel.turn",
  ])
  expect(imports(java)).toEqual(["1 List as List from java.util"])
  const csharp = await read(
    "csharp",
    `using System.Text;
namespace Zoo {
/// <summary>A cat.</summary>
[Obsolete("use Dog")]
public class Cat { public int Age { get; set; } void Meow() {} }
}
`,
  )
  expect(definitions(csharp)).toEqual([
    "2 module Zoo",
    "5 class Zoo.Cat, exported, deprecated: use Dog | A cat.",
    "5 variable Cat.Age, exported",
    "5 method Cat.Meow",
  ])
})

test("C++: finds definitions and includes", async () => {
  const facts = await read(
    "cpp",
    `#include <vector>
#include "box.h"
#define MAX 3
namespace n {
/** A box. */
template <class T> class Box { public: void open(); };
typedef int count;
}
void n::Box::open() {}
[[deprecated("use shut")]] int *close(int a) { return 0; }
static int hidden() { return 1; }
`,
  )
  expect(definitions(facts)).toEqual([
    "3 macro MAX, exported",
    "4 module n, exported",
    "6 class n.Box, exported | A box.",
    "6 method Box.open, exported",
    "7 type n.count, exported",
    "9 method n::Box.open, exported",
    "10 function close, exported, deprecated: use shut",
    "11 function hidden",
  ])
  expect(imports(facts)).toEqual(["1 * as * from <vector>, on", "2 * as * from ./box.h, on"])
})

test("PHP, Ruby, shell and PowerShell: finds definitions and imports", async () => {
  const php = await read(
    "php",
    "<?php\nuse Foo\\Bar;\n/** A user. */\nclass User { private function x() {} }\nconst A = 1;\n",
  )
  expect(definitions(php)).toEqual(["4 class User, exported | A user.", "4 method User.x", "5 constant A, exported"])
  expect(imports(php)).toEqual(["2 Bar as Bar from Foo"])
  const ruby = await read(
    "ruby",
    `require_relative "lib/x"
# A mod.
module M
  class K
    # Runs.
    # @deprecated use go
    def run; end
    def self.make; end
  end
end
def top; end
`,
  )
  expect(definitions(ruby)).toEqual([
    "3 module M, exported | A mod.",
    "4 class M.K, exported",
    "7 method K.run, exported, deprecated: use go | Runs.",
    "8 method K.make, exported",
    "11 function top, exported",
  ])
  expect(imports(ruby)).toEqual(["1 * as * from ./lib/x"])
  const bash = await read("bash", "source ./lib.sh\n# Builds.\nbuild() { echo; }\n")
  expect(definitions(bash)).toEqual(["3 function build, exported | Builds."])
  expect(imports(bash)).toEqual(["1 * as * from ./lib.sh"])
  const shell = await read("powershell", "# Gets.\nfunction Get-Thing { }\nclass P { [void] Run() { } }\n")
  expect(definitions(shell)).toEqual([
    "2 function Get-Thing, exported | Gets.",
    "3 class P, exported",
    "3 method P.Run, exported",
  ])
})
