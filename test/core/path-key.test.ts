import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { isSamePath, pathKey, withFolderSpelling } from "../../src/core/path-key.ts"

const COMPOSED = "/Users/me/Caf\u00e9"
const DECOMPOSED = "/Users/me/Cafe\u0301"

describe("two spellings of one path", () => {
  test.each([
    ["darwin", "/Users/me/App", "/users/ME/app", true],
    ["darwin", COMPOSED, DECOMPOSED, true],
    ["darwin", COMPOSED.toUpperCase(), DECOMPOSED, true],
    ["darwin", "/Users/me/App/", "/Users/me/App", true],
    ["darwin", "/", "/", true],
    ["darwin", "/Users/me/ΟΔΟΣ", "/Users/me/οδος", true],
    ["darwin", "/Users/me/app", "/Users/me/app2", false],
    ["darwin", "/Users/me/straße", "/Users/me/strasse", false],
    ["darwin", "/a\\b", "/a/b", false],
    ["win32", "C:\\Code\\App", "c:/code/app", true],
    ["win32", "C:\\Code\\App\\", "c:\\code\\app", true],
    ["win32", "\\\\?\\C:\\Code", "c:\\code", true],
    ["win32", "C:\\", "c:/", true],
    ["win32", "C:\\Users\\JÜRGEN", "c:\\users\\jürgen", true],
    ["win32", "\\\\Server\\share\\x", "//server/Share/x", true],
    ["win32", "C:\\code", "D:\\code", false],
    ["linux", "/home/me/App", "/home/me/app", false],
    ["linux", COMPOSED, DECOMPOSED, false],
    ["linux", "/home/me/app/", "/home/me/app", false],
  ] as const)("on %s, %s and %s", (platform, a, b, same) => {
    expect(isSamePath(a, b, platform)).toBe(same)
    expect(pathKey(a, platform) === pathKey(b, platform)).toBe(same)
  })

  test("a key is its own key, and on Linux a path is its key", () => {
    const text = fc.string({ unit: "grapheme" })
    fc.assert(
      fc.property(text, fc.constantFrom("darwin" as const, "win32" as const), (path, platform) => {
        expect(pathKey(pathKey(path, platform), platform)).toBe(pathKey(path, platform))
        expect(pathKey(path, "linux")).toBe(path)
      }),
    )
  })
})

describe("a path below a folder that is spelled differently", () => {
  test.each([
    ["darwin", "/Users/me/App", "/users/me/app/src/A.ts", "/Users/me/App/src/A.ts"],
    ["darwin", COMPOSED, `${DECOMPOSED}/src/a.ts`, `${COMPOSED}/src/a.ts`],
    ["darwin", `${DECOMPOSED}/`, `${COMPOSED}/src/a.ts`, `${DECOMPOSED}/src/a.ts`],
    ["darwin", "/Users/me/App", "/Users/me/App2/src/a.ts", "/Users/me/App2/src/a.ts"],
    ["darwin", "/Users/me/App", "/Users/me", "/Users/me"],
    ["darwin", "/Users/me/App", "src/a.ts", "src/a.ts"],
    ["win32", "C:\\Code\\App", "c:/code/app/src/a.ts", "C:\\Code\\App/src/a.ts"],
    ["win32", "C:\\Code\\App", "c:\\code\\app\\src\\a.ts", "C:\\Code\\App\\src\\a.ts"],
    ["linux", "/home/me/App", "/home/me/app/src/a.ts", "/home/me/app/src/a.ts"],
  ] as const)("on %s: %s and %s", (platform, folder, path, expected) => {
    expect(withFolderSpelling(folder, path, platform)).toBe(expected)
  })
})
