import { expect, test } from "vitest"
import { command } from "../../src/cli/command.ts"
import { integer, object, optional, text } from "../../src/core/schema.ts"
import { defineTool } from "../../src/core/tool.ts"

// The compiler proves these errors: if one does not occur, `npm run check` fails at that line.

const counting = defineTool({
  name: "count",
  summary: "Counts",
  input: object({ word: optional(text()) }),
  output: object({ total: integer(), note: optional(text()) }),
  cli: { group: "Keep", example: "dex count" },
  run: async () => ({ total: 1 }),
})

test("a view does not compile if its tool returns something else", async () => {
  const fits = command(counting, { view: async () => (output) => ({ lines: [String(output.total)] }) })
  // @ts-expect-error: there is no such field
  command(counting, { view: async () => (output: { count: number }) => ({ lines: [String(output.count)] }) })
  // @ts-expect-error: it is a number
  command(counting, { view: async () => (output: { total: string }) => ({ lines: [output.total] }) })
  // @ts-expect-error: it may be absent
  command(counting, { view: async () => (output: { note: string }) => ({ lines: [output.note] }) })
  // @ts-expect-error: the command has no such option
  command(counting, { view: async () => (_, _context, input: { words: string[] }) => ({ lines: input.words }) })
  const terminal = { columns: 80, color: false, interactive: false }
  const print = await fits.face.view()
  expect(await print({ total: 3 }, { terminal, home: "/", numbered: false }, {})).toEqual({ lines: ["3"] })
})
