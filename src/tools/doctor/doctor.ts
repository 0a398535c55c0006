import { choice, flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { unknownTablesField } from "../fields.ts"

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
        unknown: optional(mapOf(integer(), "For an agent: records of unknown types, by type. dex stores them.")),
        unknown_tables: unknownTablesField,
      }),
    ),
  }),
  cli: { group: "Keep", common: true, example: "dex doctor" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.ok,
})

export const secrets = defineTool({
  name: "secrets",
  summary: "List the agents' files that contain secrets, by kind",
  input: object({}),
  output: object({
    secrets: integer(
      "Secrets that dex removed when it last read the files that still exist. One that occurs twice counts twice.",
    ),
    kinds: mapOf(integer(), "These secrets, by kind."),
    files: listOf(
      object({
        source: text(),
        path: text(),
        state: choice(
          ["present", "gone", "other_machine"],
          "`gone`: the file, or the conversation in the database, no longer exists. `other_machine`: dex knows it from an imported history.",
        ),
        secrets: integer(),
        kinds: mapOf(integer()),
        conversations: listOf(text(), "Refs of the conversations in this file that contained them."),
      }),
      "Files that exist first, each group by number of secrets.",
    ),
    in_private_projects: integer("Secrets in files of private projects, which are only listed inside those."),
  }),
  cli: {
    group: "Keep",
    example: "dex doctor secrets",
    formOf: { command: "doctor", word: "secrets", now: "dex doctor secrets", example: "dex doctor secrets" },
  },
  run: async (dex: Dex) => (await import("./run-secrets.ts")).runSecrets(dex),
  found: (output) => output.files.length + output.in_private_projects > 0,
})
