import { choice, flag, list, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "./context.ts"

export const doctor = defineTool({
  name: "doctor",
  summary: "Check that everything is sound, and say how to mend what is not",
  input: object({}),
  output: object({
    ok: flag(),
    checks: list(
      object({
        name: text(),
        status: choice(["ok", "note", "problem"]),
        message: text(),
        mend: optional(text("The command that mends it.")),
      }),
    ),
  }),
  cli: { example: "dex doctor" },
  run: async (dex: Dex) => (await import("./doctor.run.ts")).run(dex),
  found: (output) => output.ok,
})
