import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { JsonAddition, TomlAddition } from "../../src/agents/kit/wiring.ts"
import { undoEdits } from "../../src/integrations/edit.ts"
import { addToJson, applyAll, findInJson, removeFromJson } from "../../src/integrations/edit-json.ts"
import { addToToml, findInToml, removeFromToml } from "../../src/integrations/edit-toml.ts"
import { jsonTree, jsonValue } from "../../src/integrations/json-tree.ts"
import { tomlStatements } from "../../src/integrations/toml-lines.ts"
import { JSON_FILES, TOML_FILES } from "./configs.ts"

const SERVER: JsonAddition = {
  type: "property",
  path: ["mcpServers", "dex"],
  value: { command: "/home/me/.dex/bin/dex", args: ["serve"] },
}
const HOOK: JsonAddition = {
  type: "item",
  path: ["hooks", "SessionStart"],
  value: { hooks: [{ type: "command", command: "/home/me/.dex/bin/dex-sync" }] },
}
const TABLE: TomlAddition = {
  type: "table",
  path: ["mcp_servers", "dex"],
  values: { command: "/home/me/.dex/bin/dex", args: ["serve"], required: true },
}

const meaningOf = (text: string) => {
  const tree = jsonTree(text)
  return tree === undefined ? {} : (jsonValue(tree) as Record<string, unknown>)
}

/** What the object says with the addition in its place; nothing else differs. */
function expected(value: Record<string, unknown>): Record<string, unknown> {
  const copy = structuredClone(value) as Record<string, Record<string, unknown>>
  copy.mcpServers = { ...copy.mcpServers, dex: SERVER.value }
  const starts = (copy.hooks?.SessionStart ?? []) as unknown[]
  copy.hooks = { ...copy.hooks, SessionStart: [...starts, HOOK.value] }
  return copy
}

function addBoth(text: string) {
  const server = addToJson(text, SERVER)
  const withServer = applyAll(text, server.edits)
  const hook = addToJson(withServer, HOOK)
  return { after: applyAll(withServer, hook.edits), edits: [...server.edits, ...hook.edits], server, hook }
}

describe("JSON with comments", () => {
  for (const [name, text] of Object.entries(JSON_FILES)) {
    test(`${name}: dex gets in, and out again byte for byte`, () => {
      const { after, edits } = addBoth(text)
      expect(meaningOf(after)).toEqual(expected(meaningOf(text)))
      expect([SERVER, HOOK].map((addition) => findInJson(after, addition))).toEqual(["same", "same"])
      expect(undoEdits(after, edits)).toBe(text)
    })

    test(`${name}: what stood there still stands there, in its order, with its comments and line ends`, () => {
      const { after } = addBoth(text)
      let at = 0
      // Blanks apart: an empty object gets lines.
      for (const character of text.replace(/\s/g, "")) {
        at = after.indexOf(character, at) + 1
        expect(at, `${character} is missing`).toBeGreaterThan(0)
      }
      const comments = (of: string) => of.match(/\/\/.*|\/\*.*?\*\//g)
      expect(comments(after)).toEqual(comments(text))
      if (text.includes("\r\n")) expect(after.replaceAll("\r\n", "")).not.toContain("\n")
    })

    test(`${name}: dex gets out by structure as well, with what it made on the way`, () => {
      const { after, server, hook } = addBoth(text)
      // Somebody wrote in between: positions no longer hold.
      const moved = `\n${after}`.replace("\n\ufeff", "\ufeff")
      const left = removeFromJson(removeFromJson(moved, HOOK, hook.made), SERVER, server.made)
      expect(meaningOf(left)).toEqual(meaningOf(text))
      expect(left).not.toContain("dex")
    })
  }

  test("what another program rewrote with our entry in it comes back as it would have written it", () => {
    const other = { a: 1, mcpServers: { x: { command: "y" } } }
    const { server } = addBoth(JSON.stringify(other, undefined, 2))
    const rewritten = JSON.stringify(
      { b: [true], ...other, mcpServers: { ...other.mcpServers, dex: SERVER.value } },
      undefined,
      2,
    )
    expect(removeFromJson(rewritten, SERVER, server.made)).toBe(JSON.stringify({ b: [true], ...other }, undefined, 2))
  })

  test.each([
    ['{\n  "mcpServers": {\n    "a": {}, // first\n    "dex": {} }\n}\n', { a: {} }],
    ['{\n  "mcpServers": {\n    "a": {}, // first\n    "dex": {}, "b": {}\n  }\n}\n', { a: {}, b: {} }],
    ['{\r\n  "mcpServers": { // all\r\n    "dex": {}, /* b */ "b": {} }\r\n}\r\n', { b: {} }],
    ['{\n  "mcpServers": { // none\n    "dex": {} }\n}\n', {}],
  ])("what stands behind our entry on its line does not get into a comment before it: %j", (text, servers) => {
    expect(meaningOf(removeFromJson(text, SERVER, 1))).toEqual({ mcpServers: servers })
  })

  test("an entry of ours that somebody added to is told from one that says something else", () => {
    const { after } = addBoth("{}")
    expect(findInJson(after.replace('"args"', '"env": {}, "args"'), SERVER)).toBe("more")
    expect(findInJson(after.replace("bin/dex", "bin/other"), SERVER)).toBe("other")
  })

  test("any JSON, however it is indented and commented", () => {
    const indents = fc.constantFrom("", " ", "  ", "    ", "\t")
    const comments = fc.constantFrom("", ' // a "comment" {', " /* [ */")
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        indents,
        comments,
        fc.boolean(),
        (value, indent, comment, crlf) => {
          fc.pre(!("mcpServers" in value) && !("hooks" in value))
          const lines = JSON.stringify(value, undefined, indent).split("\n")
          // After a comma or a bracket a line may end in a comment.
          const text = lines.map((line) => (lines.length > 1 ? line + comment : line)).join(crlf ? "\r\n" : "\n")
          const { after, edits, server, hook } = addBoth(text)
          expect(meaningOf(after)).toEqual(expected(JSON.parse(JSON.stringify(value))))
          expect(undoEdits(after, edits)).toBe(text)
          const left = removeFromJson(removeFromJson(after, HOOK, hook.made), SERVER, server.made)
          expect(meaningOf(left)).toEqual(meaningOf(text))
        },
      ),
      { numRuns: 300 },
    )
  })

  test.each([
    ['{"a": }', /not valid JSON at line 1/],
    ['{\n"a": 1\n"b": 2}', /not valid JSON at line 3/],
    ['{"a": 1', /not valid JSON/],
    ['{"a": 1} x', /not valid JSON/],
    ["{/* no end", /not valid JSON/],
    ["[1]", /should have an object at its top/],
    ['{"mcpServers": []}', /should have an object at mcpServers/],
    [`${"[".repeat(5000)}`, /nested too deeply/],
  ])("says what is wrong with %.20s and changes nothing", (text, message) => {
    expect(() => addToJson(text, SERVER)).toThrow(message)
  })
})

describe("TOML", () => {
  const said = (text: string) => tomlStatements(text).map(({ type, path, value }) => ({ type, path, value }))

  for (const [name, text] of Object.entries(TOML_FILES)) {
    test(`${name}: dex gets in at the end, and out again byte for byte`, () => {
      expect(findInToml(text, TABLE)).toBe("absent")
      const edits = addToToml(text, TABLE)
      const after = applyAll(text, edits)
      expect(findInToml(after, TABLE)).toBe("same")
      expect(after.startsWith(text)).toBe(true)
      expect(said(after).slice(0, said(text).length)).toEqual(said(text))
      expect(undoEdits(after, edits)).toBe(text)
      if (text.includes("\r\n")) expect(after.replaceAll("\r\n", "")).not.toContain("\n")
    })

    test(`${name}: what Codex appended meanwhile stays when dex gets out`, () => {
      const appended = '\n[projects."/x"]\ntrust_level = "trusted"\n'
      const after = `${applyAll(text, addToToml(text, TABLE))}[mcp_servers.dex.env]\nA = "b"\n${appended}`
      const left = removeFromToml(after, TABLE)
      expect(said(left)).toEqual([...said(text), ...said(appended)])
    })
  }

  test("a table that somebody added to is told from one that says something else", () => {
    const after = applyAll("", addToToml("", TABLE))
    expect(findInToml(`${after}startup_timeout_sec = 20\n`, TABLE)).toBe("more")
    expect(findInToml(`${after}[mcp_servers.dex.env]\nA = "b"\n`, TABLE)).toBe("more")
    expect(findInToml(`${after}[mcp_servers.dex.tools.dex_get]\napproval_mode = "approve"\n`, TABLE)).toBe("same")
    expect(findInToml(after.replace("true", "false"), TABLE)).toBe("other")
    expect(findInToml('[mcp_servers."dex"]\ncommand = "x"\n', TABLE)).toBe("other")
  })

  test.each([
    ["mcp_servers = { a = { command = 1 } }\n", /mcp_servers on one line/],
    ['a = "no end\n', /not valid TOML at line 1/],
    ["a = [1,\n", /not valid TOML/],
    ["a = 1\n[x\n", /not valid TOML at line 2/],
    ["just words\n", /not valid TOML at line 1/],
  ])("says what is wrong with %j and changes nothing", (text, message) => {
    expect(() => findInToml(text, TABLE)).toThrow(message)
  })
})
