import { choice, flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  repair: optional(flag("Restore damaged data: in place, from the agents' files, or in a new history.db.")),
})
export type DoctorInput = Infer<typeof input>

export const doctor = defineTool({
  name: "doctor",
  summary: "Check for problems and show how to fix them",
  input,
  output: object({
    ok: flag(),
    repaired: optional(
      object({
        kept_as: optional(text("The new name of the damaged history.db. Absent if it was repaired in place.")),
        rows: optional(integer("Rows copied to the new file.")),
        restored: listOf(text(), "Refs of conversations that were restored completely."),
        damaged: listOf(text(), "Refs of conversations with lost parts."),
      }),
    ),
    checks: listOf(
      object({
        name: text(),
        status: choice(["ok", "note", "problem"]),
        message: text(),
        mend: optional(text("The command that fixes it.")),
      }),
    ),
  }),
  cli: { group: "Keep", common: true, example: "dex doctor" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.ok,
})
