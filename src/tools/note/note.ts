import { choice, flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  words: withDefault(listOf(text(), "The note. Omit to list."), []),
  file: optional(text("The file it is about.")),
  project: optional(text("The project's folder. Default: the current one.")),
  rejects: optional(text("The ref or row of a decision that is no longer valid.")),
  all: withDefault(flag("List the notes of all projects, not only of this one."), false),
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 200 }), 20),
})
export type NoteInput = Infer<typeof input>

export const notes = defineTool({
  name: "note",
  summary: "Keep a note for a project or a file, or list the notes",
  input,
  output: object({
    done: choice(["kept", "corrected", "confirmed", "listed"]),
    notes: listOf(
      object({
        ref: text(),
        text: text(),
        by: text("person, or the name of the agent that wrote it."),
        confirmed: flag("A person wrote or confirmed the note. Other notes are never suggested."),
        date: text(),
        project: text(),
        files: listOf(text()),
        rejects: optional(text("The decision that the note rejects.")),
      }),
      "Newest first.",
    ),
    total: integer(),
  }),
  cli: {
    group: "Learn",
    positional: "words",
    short: { f: "file", p: "project", l: "limit", a: "all" },
    aliases: ["notes"],
    example: 'dex note "Deploys need the VPN" --file deploy.sh',
    forms: {
      "dex note confirm 2": "Confirm an agent's note, by its row or ref.",
      'dex note dex_note:… "New words"': "Correct a note.",
    },
  },
  mcp: {
    name: "dex_note",
    description: "Keep a note for later sessions, in your name; the user may confirm it.",
    omit: ["project", "rejects", "all", "limit"],
    writes: true,
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.notes.length > 0,
})
