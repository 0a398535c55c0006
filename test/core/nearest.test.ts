import { expect, test } from "vitest"
import { nearest } from "../../src/core/nearest.ts"

test("an extra, missing or wrong letter, or two swapped letters, are one edit each", () => {
  for (const typed of ["searchh", "serch", "seerch", "saerch", "serach", "SEARHC"])
    expect([typed, nearest(typed, ["list", "search", "show"])]).toEqual([typed, ["search"]])
})

test("two edits are near, three are not", () => {
  expect(nearest("dcesiosn", ["decisions"])).toEqual([])
  expect(nearest("decsions", ["decisions"])).toEqual(["decisions"])
  expect(nearest("dceisison", ["decisions"])).toEqual([])
  expect(nearest("dceisoins", ["decisions"])).toEqual(["decisions"])
})

test("fewer than half the letters may differ", () => {
  expect(nearest("sl", ["ls"])).toEqual([])
  expect(nearest("lst", ["list"])).toEqual(["list"])
  expect(nearest("form", ["format", "from"])).toEqual(["from"])
  expect(nearest("", ["a", "ls"])).toEqual([])
})

test("the nearest come first, then in their own order, up to the limit", () => {
  const names = ["traces", "trace", "tracks", "graces"]
  expect(nearest("trace", names)).toEqual(["trace", "traces", "tracks"])
  expect(nearest("traces", names, 2)).toEqual(["traces", "trace"])
  expect(nearest("traces", names, 9)).toEqual(["traces", "trace", "tracks", "graces"])
})

test("letters of any script are one letter", () => {
  expect(nearest("größse", ["größe"])).toEqual(["größe"])
  expect(nearest("a🦊🐻c", ["a🐻🦊c"])).toEqual(["a🐻🦊c"])
})
