import { flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const backupInput = object({
  file: text("The file to write."),
  replace: optional(flag("Replace an older backup of the same history, once the new one has been checked.")),
})
export type BackupInput = Infer<typeof backupInput>

export const backup = defineTool({
  name: "backup",
  summary: "Write the complete history to one file and check it",
  input: backupInput,
  output: object({
    file: text(),
    bytes: integer(),
    conversations: integer(),
    messages: integer(),
    blocks: integer("Compressed blocks that were read back."),
    duration_ms: integer(),
  }),
  cli: { group: "Keep", positional: "file", example: "dex backup ~/backups/dex.db" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})

const restoreInput = object({
  file: text("A file that `dex backup` wrote."),
  replace: optional(flag("Replace an existing history, which is kept under another name.")),
})
export type RestoreInput = Infer<typeof restoreInput>

export const restore = defineTool({
  name: "restore",
  summary: "Replace the history with a backup",
  input: restoreInput,
  output: object({
    file: text(),
    conversations: integer(),
    messages: integer(),
    kept: optional(text("The name under which the replaced history was kept.")),
    left_out: optional(listOf(text(), "Databases in the backup that dex did not write.")),
  }),
  cli: {
    group: "Keep",
    positional: "file",
    example: "dex restore ~/backups/dex.db",
    formOf: {
      command: "backup",
      option: "restore",
      now: "dex backup --restore FILE",
      example: "dex backup --restore ~/backups/dex.db",
    },
  },
  run: async (dex: Dex, input) => (await import("./run-restore.ts")).run(dex, input),
})

const importHistoryInput = object({
  file: text(
    "A backup, the history.db of another machine, or an export of ChatGPT, Claude or Gemini: the zip file or the JSON file in it.",
  ),
  with_notes: optional(
    flag(
      "Also import its notes as your own. Use this only for a history of yours, because agents are shown your notes.",
    ),
  ),
})
export type ImportInput = Infer<typeof importHistoryInput>

export const importHistory = defineTool({
  name: "import",
  summary: "Merge another machine's history, or an export, into this one",
  input: importHistoryInput,
  output: object({
    file: text(),
    services: optional(listOf(text(), "If the file is an export: the sources of its conversations.")),
    conversations: integer("Conversations that are new or changed here."),
    messages: integer("Messages that are new here."),
    forgotten: integer("Conversations that were left out because they were deleted here."),
    notes_left_out: integer("Notes that were left out: `with_notes` imports them."),
    left_out: listOf(
      object({ what: text(), count: integer() }),
      "Data that was not imported: of a history, what dex never writes; of an export, what it could not read.",
    ),
    projects: listOf(
      object({ from: text("The folder there."), to: text("The folder here.") }),
      "Projects that are in another folder on this machine, found by their git remote or first commit.",
    ),
    made_private: listOf(text(), "Projects that are private there, and now also here."),
    duration_ms: integer(),
  }),
  cli: { group: "Keep", positional: "file", example: "dex import ~/Sync/laptop.db" },
  run: async (dex: Dex, input) => (await import("./run-import.ts")).run(dex, input),
})
