import { expect, test } from "vitest"
import { nearestNames } from "../../src/core/nearest.ts"

test("an extra, missing or wrong letter, or two swapped letters, are one edit each", () => {
  for (const typed of ["searchh", "serch", "seerch", "saerch", "serach", "SEARHC"])
    expect([typed, nearestNames(typed, ["list", "search", "show"])]).toEqual([typed, ["search"]])
})

test("two edits are near, but three are not", () => {
  expect(nearestNames("dcesiosn", ["decisions"])).toEqual([])
  expect(nearestNames("decsions", ["decisions"])).toEqual(["decisions"])
  expect(nearestNames("dceisison", ["decisions"])).toEqual([])
  expect(nearestNames("dceisoins", ["decisions"])).toEqual(["decisions"])
})

test("fewer than half the letters may differ", () => {
  expect(nearestNames("sl", ["ls"])).toEqual([])
  expect(nearestNames("lst", ["list"])).toEqual(["list"])
  expect(nearestNames("form", ["format", "from"])).toEqual(["from"])
  expect(nearestNames("", ["a", "ls"])).toEqual([])
})

test("the nearest come first, then in their own order, up to the limit", () => {
  const names = ["traces", "trace", "tracks", "graces"]
  expect(nearestNames("trace", names)).toEqual(["trace", "traces", "tracks"])
  expect(nearestNames("traces", names, 2)).toEqual(["traces", "trace"])
  expect(nearestNames("traces", names, 9)).toEqual(["traces", "trace", "tracks", "graces"])
})

test("a letter of any script counts as one letter", () => {
  expect(nearestNames("größse", ["größe"])).toEqual(["größe"])
  expect(nearestNames("a🦊🐻c", ["a🐻🦊c"])).toEqual(["a🐻🦊c"])
})
