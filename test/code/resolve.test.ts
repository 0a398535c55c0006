import { describe, expect, test } from "vitest"
import type { LanguageId } from "../../src/code/languages.ts"
import { openParser } from "../../src/code/parse.ts"
import { bindUses, importTarget, type ProjectPaths } from "../../src/code/resolve.ts"

function project(paths: string[], goModule?: { folder: string; module: string }): ProjectPaths {
  return {
    hasFile: (path) => paths.includes(path),
    hasFolder: (folder) => paths.some((path) => path.slice(0, path.lastIndexOf("/")) === folder),
    goModule: () => goModule,
  }
}
const target = (importer: string, language: LanguageId, module: string, here: ProjectPaths, name = "*") =>
  importTarget(importer, language, { module, name }, here)

describe("the file that an import names", () => {
  test("scripts: is found with or without its extension, by its compiled name, as an index file, or by the bundlers' alias", () => {
    const here = project(["src/a.ts", "src/view.tsx", "src/lib/index.ts", "src/old.js", "src/types.d.ts", "top.mjs"])
    const from = (module: string) => target("src/main.ts", "typescript", module, here)
    expect(from("./a.ts")).toBe("src/a.ts")
    expect(from("./a")).toBe("src/a.ts")
    expect(from("./a.js")).toBe("src/a.ts")
    expect(from("./view.js")).toBe("src/view.tsx")
    expect(from("./lib")).toBe("src/lib/index.ts")
    expect(from("./old")).toBe("src/old.js")
    expect(from("./types")).toBe("src/types.d.ts")
    expect(from("../top.mjs")).toBe("top.mjs")
    expect(from("@/lib")).toBe("src/lib/index.ts")
    expect(from("lib")).toBeUndefined()
    expect(from("./missing")).toBeUndefined()
    expect(from("../../outside")).toBeUndefined()
  })

  test("Python: is found by a relative import, from the root of its packages, or as a module named like a member", () => {
    const here = project([
      ...["app/__init__.py", "app/core/__init__.py", "app/core/db.py", "app/main.py"],
      ...["tools/run.py", "tools/helper.py", "src/lib/__init__.py", "json.py"],
    ])
    const from = (importer: string, module: string, name?: string) => target(importer, "python", module, here, name)
    expect(from("app/main.py", ".core.db")).toBe("app/core/db.py")
    expect(from("app/main.py", ".core", "db")).toBe("app/core/db.py")
    expect(from("app/main.py", ".core", "connect")).toBe("app/core/__init__.py")
    expect(from("app/core/db.py", "..main", "run")).toBe("app/main.py")
    expect(from("app/core/db.py", "app.main", "run")).toBe("app/main.py")
    expect(from("tools/run.py", "helper")).toBe("tools/helper.py")
    expect(from("app/main.py", "lib")).toBe("src/lib/__init__.py")
    // Absolute names do not begin in a package's own folder.
    expect(from("app/core/db.py", "db")).toBeUndefined()
    expect(from("app/main.py", "....far")).toBeUndefined()
  })

  test("Go: is found in the folder of the module's package", () => {
    const here = project(["server/store/row.go", "server/main.go"], { folder: "server", module: "example.com/app" })
    expect(target("server/main.go", "go", "example.com/app/store", here)).toBe("server/store/")
    expect(target("server/main.go", "go", "example.com/app", here)).toBe("server/")
    expect(target("server/main.go", "go", "example.com/application", here)).toBeUndefined()
    expect(target("server/main.go", "go", "fmt", here)).toBeUndefined()
  })

  test("C and Ruby: is found next to the importing file", () => {
    const here = project(["src/box.h", "include/n/lid.h", "lib/x.rb"])
    expect(target("src/box.c", "cpp", "./box.h", here)).toBe("src/box.h")
    expect(target("src/box.c", "cpp", "./n/lid.h", here)).toBe("include/n/lid.h")
    expect(target("src/box.c", "cpp", "<vector>", here)).toBeUndefined()
    expect(target("lib/main.rb", "ruby", "./x", here)).toBe("lib/x.rb")
  })
})

describe("how a use is resolved", () => {
  async function bound(language: LanguageId, text: string): Promise<string[]> {
    const parser = await openParser()
    try {
      return bindUses((await parser.parse(language, text))!).map(
        ({ line, name, via }) => `${line} ${name} ${via.type}${via.type === "import" ? ` ${via.index}` : ""}`,
      )
    } finally {
      parser.close()
    }
  }

  test("by an import under its own name, in the file, in the class, or not at all", async () => {
    const text = `import main, { read as load, Box } from "./io.ts"
import * as names from "./names.ts"
class Door {
  open() { this.turn(); this.inherited(); load(); main(); names.join(); Box.make(); own(); unknown(); it.turn() }
  turn() {}
}
function own() {}
`
    expect(await bound("typescript", text)).toEqual([
      "4 turn local",
      "4 inherited unknown",
      "4 read import 1",
      "4 default import 0",
      "4 join import 3",
      "4 Box import 2",
      "4 make import 2",
      "4 own local",
      "4 unknown unknown",
      "4 turn unknown",
    ])
  })

  test("Python: self, modules under a dotted name", async () => {
    const text = `import a.b
from .io import read as load
class C:
    def f(self):
        a.b.go(); load(); self.g(); self.h()
    def g(self): pass
class D:
    def h(self): pass
`
    expect(await bound("python", text)).toEqual(["5 go import 0", "5 read import 1", "5 g local", "5 h unknown"])
  })
})
