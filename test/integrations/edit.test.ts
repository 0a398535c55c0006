import fc from "fast-check"
import { getNodeValue, type ParseError, parseTree } from "jsonc-parser"
import { describe, expect, test } from "vitest"
import type { JsonAddition, TomlAddition } from "../../src/agents/kit/wiring.ts"
import { undoEdits } from "../../src/integrations/edit.ts"
import { addToJson, applyEdits, findInJson, isEmptyJson, removeFromJson } from "../../src/integrations/edit-json.ts"
import { addToToml, findInToml, removeFromToml } from "../../src/integrations/plan.ts"
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

const LIST_TABLE: TomlAddition = {
  type: "list_table",
  path: ["hooks"],
  values: { event: "UserPromptSubmit", command: "/home/me/.dex/bin/dex-hook kimi_code UserPromptSubmit", timeout: 1 },
}

function meaningOf(text: string): Record<string, unknown> {
  const errors: ParseError[] = []
  const tree = parseTree(text.replace("\ufeff", ""), errors, { allowTrailingComma: true, allowEmptyContent: true })
  expect(errors).toEqual([])
  return tree === undefined ? {} : getNodeValue(tree)
}

/** The object with the addition in its place; nothing else differs. */
function expected(value: Record<string, unknown>): Record<string, unknown> {
  const copy = structuredClone(value) as Record<string, Record<string, unknown>>
  copy.mcpServers = { ...copy.mcpServers, dex: SERVER.value }
  const starts = (copy.hooks?.SessionStart ?? []) as unknown[]
  copy.hooks = { ...copy.hooks, SessionStart: [...starts, HOOK.value] }
  return copy
}

function addBoth(text: string) {
  const server = addToJson(text, SERVER)
  const withServer = applyEdits(text, server.edits)
  const hook = addToJson(withServer, HOOK)
  return { after: applyEdits(withServer, hook.edits), edits: [...server.edits, ...hook.edits], server, hook }
}

describe("JSON with comments", () => {
  for (const [name, text] of Object.entries(JSON_FILES)) {
    test(`${name}: dex adds its entry, and removes it byte for byte`, () => {
      const { after, edits } = addBoth(text)
      expect(meaningOf(after)).toEqual(expected(meaningOf(text)))
      expect([SERVER, HOOK].map((addition) => findInJson(after, addition))).toEqual(["same", "same"])
      expect(undoEdits(after, edits)).toBe(text)
    })

    test(`${name}: existing content keeps its order, comments and line endings`, () => {
      const { after } = addBoth(text)
      let at = 0
      // Ignores blanks, because an empty object gets lines.
      for (const character of text.replace(/\s/g, "")) {
        at = after.indexOf(character, at) + 1
        expect(at, `${character} is missing`).toBeGreaterThan(0)
      }
      const comments = (of: string) => of.match(/\/\/.*|\/\*.*?\*\//g)
      expect(comments(after)).toEqual(comments(text))
      if (text.includes("\r\n")) expect(after.replaceAll("\r\n", "")).not.toContain("\n")
    })

    test(`${name}: dex also removes its entry by structure, with the parents that it created`, () => {
      const { after, server, hook } = addBoth(text)
      // Somebody changed the file meanwhile, so positions are no longer valid.
      const moved = `\n${after}`.replace("\n\ufeff", "\ufeff")
      const left = removeFromJson(removeFromJson(moved, HOOK, hook.made), SERVER, server.made)
      expect(meaningOf(left)).toEqual(meaningOf(text))
      expect(left).not.toContain("dex")
    })
  }

  test("removing our entry from a file that another program rewrote keeps that program's style", () => {
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
  ])("text after our entry on its line does not become part of a comment before it: %j", (text, servers) => {
    expect(meaningOf(removeFromJson(text, SERVER, 1))).toEqual({ mcpServers: servers })
  })

  const SHORT: JsonAddition = { type: "property", path: ["mcpServers", "dex"], value: { a: [1] } }

  test.each([
    [
      "two spaces where the file does not say",
      "{}",
      '{\n  "mcpServers": {\n    "dex": {\n      "a": [\n        1\n      ]\n    }\n  }\n}',
    ],
    [
      "tabs",
      '{\n\t"mcpServers": {\n\t\t"b": 1\n\t}\n}',
      '{\n\t"mcpServers": {\n\t\t"b": 1,\n\t\t"dex": {\n\t\t\t"a": [\n\t\t\t\t1\n\t\t\t]\n\t\t}\n\t}\n}',
    ],
    ["one line", '{"mcpServers":{"b":1}}', '{"mcpServers":{"b":1, "dex": {"a":[1]}}}'],
    ["an empty place on one line", '{"mcpServers":{ }}', '{"mcpServers":{"dex": {"a":[1]}}}'],
    [
      "an empty place with a comment",
      '{"mcpServers":{ /* none */ }}',
      '{"mcpServers":{ /* none */\n  "dex": {\n    "a": [\n      1\n    ]\n  }\n}}',
    ],
    ["one line with a trailing comma", '{"mcpServers": {"b": 1,}}', '{"mcpServers": {"b": 1, "dex": {"a":[1]}}}'],
    [
      "comments behind the last value",
      '{"mcpServers": {\r\n "b": 1 /* one */ // two\r\n}}',
      '{"mcpServers": {\r\n "b": 1, /* one */ // two\r\n "dex": {\r\n   "a": [\r\n     1\r\n   ]\r\n }\r\n}}',
    ],
    [
      "a comment before the comma",
      '{"mcpServers": {"b": 1 /* , */ ,}}',
      '{"mcpServers": {"b": 1 /* , */ , "dex": {"a":[1]}}}',
    ],
  ])("our entry is formatted like the file: %s", (_, text, after) => {
    expect(applyEdits(text, addToJson(text, SHORT).edits)).toBe(after)
  })

  test.each([
    ["first on one line", '{"mcpServers": {"dex": 1, "b": 2}}', '{"mcpServers": {"b": 2}}'],
    ["last on one line", '{"mcpServers": { "b": 2, "dex": 1 }}', '{"mcpServers": { "b": 2 }}'],
    ["last on one line with a trailing comma", '{"mcpServers": { "b": 2, "dex": 1, }}', '{"mcpServers": { "b": 2, }}'],
    [
      "first on its own line",
      '{"mcpServers": {\r\n  "dex": 1,\r\n  "b": 2\r\n}}',
      '{"mcpServers": {\r\n  "b": 2\r\n}}',
    ],
    [
      "last on its own line",
      '{"mcpServers": {\n  "b": 2, // two\n  "dex": 1\n}}',
      '{"mcpServers": {\n  "b": 2 // two\n}}',
    ],
    ["the only one", '{"z": 1, "mcpServers": { "dex": 1 }}', '{"z": 1}'],
    [
      "the only one with a trailing comma",
      '{\n  "z": 1,\n  "mcpServers": {\n    "dex": 1,\n  },\n}',
      '{\n  "z": 1,\n}',
    ],
    ["the only one beside a comment", '{"mcpServers": { /* mine */ "dex": 1 }}', '{"mcpServers": { /* mine */ }}'],
    ["named twice", '{"mcpServers": {"dex": 1, "dex": 2}}', '{"mcpServers": {"dex": 1}}'],
  ])("removing our entry keeps its surroundings: %s", (_, text, left) => {
    expect(removeFromJson(text, SHORT, 0)).toBe(left)
  })

  test("removes the last of two equal entries in a list", () => {
    const text = '{"hooks": {"SessionStart": [7, 8, 7]}}'
    expect(removeFromJson(text, { ...HOOK, value: 7 }, 2)).toBe('{"hooks": {"SessionStart": [7, 8]}}')
  })

  test.each([
    ["", "", "\n"],
    ["\ufeff", "\ufeff", "\n"],
    ["\r\n", "\r\n", "\r\n"],
    ["// nothing", "// nothing\n", "\n"],
    ["\ufeff// nothing\r\n", "\ufeff// nothing\r\n", "\r\n"],
  ])("an empty file gets an object on separate lines: %j", (text, before, nl) => {
    const { edits } = addToJson(text, { type: "property", path: ["a", "b"], value: 1 })
    expect(applyEdits(text, edits)).toBe(before + ["{", '  "a": {', '    "b": 1', "  }", "}", ""].join(nl))
  })

  test.each([
    [JSON.stringify({ hooks: { SessionStart: { a: HOOK.value } } }), HOOK],
    ['{"mcpServers": [["dex", 1]]}', SERVER],
  ])("finds an item in lists and a property in objects: %j", (text, addition) => {
    expect(findInJson(text, addition)).toBe("absent")
    expect(removeFromJson(text, addition, 0)).toBe(text)
  })

  test.each(["", "\ufeff", " // nothing\n", "{}", "\ufeff{ /* nothing */ }\n"])("%j is empty", (text) => {
    expect(isEmptyJson(text)).toBe(true)
  })

  test.each(["[]", "0", '{"a": 1}'])("%j is not empty", (text) => {
    expect(isEmptyJson(text)).toBe(false)
  })

  test("distinguishes our entry with additions from a different one", () => {
    const { after } = addBoth("{}")
    expect(findInJson(after.replace('"args"', '"env": {}, "args"'), SERVER)).toBe("more")
    expect(findInJson(after.replace("bin/dex", "bin/other"), SERVER)).toBe("other")
  })

  test("works for any JSON, however it is indented and commented", () => {
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
          // A line may end in a comment after a comma or a bracket.
          const text = lines.map((line) => (lines.length > 1 ? line + comment : line)).join(crlf ? "\r\n" : "\n")
          const { after, edits, server, hook } = addBoth(text)
          // Not JSON.parse: Node 24's mistakes the key " for \ once it has read an object with \ in that place.
          expect(meaningOf(after)).toEqual(expected(meaningOf(text)))
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
    ["{\n/* no end\n", /not valid JSON at line 2$/],
    ['\ufeff{\r\n"a": "no end\r\n}', /not valid JSON at line 2$/],
    ['{\n"a": "\\x"}', /not valid JSON at line 2$/],
    ['{\n"a": "\t"}', /not valid JSON at line 2$/],
    ['{\n"a": 01}', /not valid JSON at line 2$/],
    ['{"a": 1,\n,}', /not valid JSON at line 2$/],
    ["{'a': 1}", /not valid JSON at line 1$/],
    ["{a: 1}", /not valid JSON at line 1$/],
    ["[1]", /should have an object at its top/],
    ['{"mcpServers": []}', /should have an object at mcpServers/],
    ['{"hooks": {"SessionStart": {}}}', /should have a list at hooks.SessionStart/, HOOK],
    ['{"mcpServers": {"dex": 1}}', /has mcpServers.dex already/],
    [`${"[".repeat(5000)}`, /nested too deeply/],
    [`{"a": ${"[".repeat(201)}${"]".repeat(201)}}`, /nested too deeply/],
  ])("says what is wrong with %.20s and changes nothing", (text, message, addition = SERVER) => {
    expect(() => addToJson(text, addition)).toThrow(message)
  })

  test("accepts 200 levels of nesting", () => {
    expect(findInJson(`{"a": ${"[".repeat(200)}${"]".repeat(200)}}`, SERVER)).toBe("absent")
  })
})

describe("TOML", () => {
  const statementsIn = (text: string) => tomlStatements(text).map(({ type, path, value }) => ({ type, path, value }))

  const cases = Object.entries(TOML_FILES).flatMap(([name, text]) =>
    [TABLE, LIST_TABLE].map((table) => [`${name}, ${table.type}`, text, table] as const),
  )
  for (const [name, text, table] of cases) {
    test(`${name}: dex adds its table at the end, and removes it byte for byte`, () => {
      expect(findInToml(text, table)).toBe("absent")
      const edits = addToToml(text, table)
      const after = applyEdits(text, edits)
      expect(findInToml(after, table)).toBe("same")
      expect(after.startsWith(text)).toBe(true)
      expect(statementsIn(after).slice(0, statementsIn(text).length)).toEqual(statementsIn(text))
      expect(undoEdits(after, edits)).toBe(text)
      if (text.includes("\r\n")) expect(after.replaceAll("\r\n", "")).not.toContain("\n")
    })

    test(`${name}: removing dex keeps what Codex appended meanwhile`, () => {
      const appended = '\n[projects."/x"]\ntrust_level = "trusted"\n'
      const added = table === TABLE ? '[mcp_servers.dex.env]\nA = "b"\n' : ""
      const left = removeFromToml(`${applyEdits(text, addToToml(text, table))}${added}${appended}`, table)
      expect(statementsIn(left)).toEqual([...statementsIn(text), ...statementsIn(appended)])
    })
  }

  test("distinguishes our table with additions from a different one", () => {
    const after = applyEdits("", addToToml("", TABLE))
    expect(findInToml(`${after}startup_timeout_sec = 20\n`, TABLE)).toBe("more")
    expect(findInToml(`${after}[mcp_servers.dex.env]\nA = "b"\n`, TABLE)).toBe("more")
    expect(findInToml(`${after}[mcp_servers.dex.tools.dex_get]\napproval_mode = "approve"\n`, TABLE)).toBe("same")
    expect(findInToml(after.replace("true", "false"), TABLE)).toBe("other")
    expect(findInToml('[mcp_servers."dex"]\ncommand = "x"\n', TABLE)).toBe("other")
  })

  test("keeps a person's tables in the same list", () => {
    const mine =
      '[[hooks]] # mine\nevent = "Stop"\ncommand = "x"\n\n[[hooks]]\nevent = "UserPromptSubmit"\ncommand = "y"\n'
    const after = applyEdits(mine, addToToml(mine, LIST_TABLE))
    expect(findInToml(after, LIST_TABLE)).toBe("same")
    expect(removeFromToml(`${after}\n[[hooks]]\nevent = "Stop"\n`, LIST_TABLE)).toBe(
      `${mine}\n[[hooks]]\nevent = "Stop"\n`,
    )
    expect(findInToml(`${after}matcher = "a"\n`, LIST_TABLE)).toBe("more")
    expect(findInToml(after.replace("timeout = 1", "timeout = 2"), LIST_TABLE)).toBe("more")
    expect(() => findInToml("hooks = []\n", LIST_TABLE)).toThrow(/hooks on one line/)
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
