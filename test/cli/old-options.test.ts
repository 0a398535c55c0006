import { describe, expect, test } from "vitest"
import { flagsOf, readArguments } from "../../src/cli/args.ts"
import { commands } from "../../src/cli/commands.ts"
import { completionScript } from "../../src/cli/completions.ts"
import { asForm } from "../../src/cli/forms.ts"
import { toolHelp } from "../../src/cli/help.ts"
import { listedCommands } from "../../src/cli/other-commands.ts"
import { referencePage } from "../../src/cli/reference.ts"
import { readInput, type Tool } from "../../src/core/tool.ts"
import { agentInputOf, definitionOf, offeredTools } from "../../src/serve/mcp/definitions.ts"

/** Options that have another name now: the command, what else is typed, the old name and the new one, and a value. */
const OLD: [command: string, words: string[], old: string, now: string, value?: string][] = [
  ["ask", ["why"], "scope", "in", "docs"],
  ["list", [], "collection", "collections", "guide"],
  ["traces", [], "tail", "limit", "5"],
  ["mute", ["fix"], "undo", "off"],
  ["watch", [], "remove", "off"],
  ["share", ["2"], "file", "output", "a.html"],
  ["hub", ["share"], "as", "name", "acme/api"],
  ["hub", ["share"], "since", "from", "2026-10-01"],
  ["hub", ["share"], "preview", "dry-run"],
  ["hub", ["share"], "conversation", "session", "current"],
]

const tools = commands.map(({ tool }) => tool as Tool<never>)
const toolNamed = (name: string) => tools.find((tool) => tool.name === name)!
const typed = (name: string, value: string | undefined) => [`--${name}`, ...(value === undefined ? [] : [value])]
const fieldOf = (option: string) => option.replaceAll("-", "_")

test("every old option is in this table", () => {
  const declared = tools.flatMap(({ name, renamed = {} }) => Object.entries(renamed).map((pair) => [name, ...pair]))
  expect(declared.sort()).toEqual(OLD.map(([name, , old, now]) => [name, fieldOf(old), fieldOf(now)]).sort())
})

describe.each(OLD)("dex %s %j --%s", (name, words, old, now, value) => {
  const tool = toolNamed(name)
  const read = (...options: string[]) => readArguments(tool, [...words, ...options])

  test("does what its new name does", () => {
    expect(read(...typed(old, value))).toEqual(read(...typed(now, value)))
    expect(read(...typed(old, value))).not.toEqual(read())
    const form = asForm(tool)
    expect(readArguments(form, [...words, ...typed(old, value)])).toEqual(read(...typed(now, value)))
  })

  test("is in no help, no completion, no reference and no hint", () => {
    expect(flagsOf(tool).map((flag) => flag.name)).not.toContain(old)
    const terminal = { columns: 200, color: false, interactive: true }
    expect(toolHelp(tool, terminal)).toContain(`--${now}`)
    expect(toolHelp(tool, terminal)).not.toMatch(new RegExp(`--${old}\\b`))
    expect(referencePage([tool])).not.toContain(`--${old}\``)
    expect(() => read(`--${old}x`)).toThrow(
      expect.not.objectContaining({ message: expect.stringMatching(`--${old}\\?`) }),
    )
  })

  test("is accepted as a field too, and a field under its new name wins", () => {
    const base = readArguments(tool, words).input as object
    const is = (given: object) => readInput(tool.input, tool, { ...base, ...given })
    const one = value === undefined ? true : now === "limit" ? Number(value) : value
    const asNew = now === "collections" ? [one] : one
    const without = Object.fromEntries(Object.entries(base).filter(([field]) => field !== fieldOf(now)))
    expect(readInput(tool.input, tool, { ...without, [fieldOf(old)]: one })).toEqual(is({ [fieldOf(now)]: asNew }))
    expect(is({ [fieldOf(old)]: { evil: 1 }, [fieldOf(now)]: asNew })).toEqual(is({ [fieldOf(now)]: asNew }))
    expect(readInput(tool.input, tool, { ...without, [fieldOf(old)]: { evil: 1 } })).toEqual({
      wrong: expect.stringMatching(new RegExp(`^${fieldOf(now)}`)),
    })
  })
})

test("no shell completes an old option", () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const script = completionScript(shell, tools, listedCommands(commands))
    for (const gone of ["scope", "tail", "undo", "preview", "collection"])
      expect(script, `${shell} ${gone}`).not.toMatch(new RegExp(`(--|-l )${gone}\\b`))
  }
})

test("agents see only new names of fields, and may send old ones", () => {
  for (const tool of offeredTools)
    for (const [old, now] of Object.entries(tool.renamed ?? {})) {
      const { properties } = definitionOf(tool).inputSchema
      expect(properties).toHaveProperty(now)
      expect(properties).not.toHaveProperty(old)
    }
  const list = offeredTools.find(({ mcp }) => mcp.name === "dex_list")!
  expect(readInput(agentInputOf(list), list, { collection: "guide" })).toMatchObject({ ok: { collections: ["guide"] } })
})

test("an option has one name in all commands", () => {
  const names = new Set(tools.flatMap((tool) => flagsOf(tool).map((flag) => flag.name)))
  for (const gone of ["scope", "tail", "since", "undo", "as", "preview", "collection"])
    expect(names).not.toContain(gone)
  for (const tool of tools)
    for (const [old, now] of Object.entries(tool.renamed ?? {})) {
      expect(tool.input.properties).toHaveProperty(now)
      expect(tool.input.properties).not.toHaveProperty(old)
    }
})

test.each([null, [], "text", 7, undefined])("input that is %j is refused as before", (given) => {
  expect(readInput(toolNamed("list").input, toolNamed("list"), given)).toEqual({ wrong: "input must be an object" })
})
