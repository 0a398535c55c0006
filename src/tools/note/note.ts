import { choice, flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  words: withDefault(listOf(text(), "The note. Omit to list them."), []),
  file: optional(text("The file it is about.")),
  project: optional(text("The project's folder. Default: the current one.")),
  rejects: optional(text("The ref or row of a decision that is no longer valid.")),
  star: optional(flag("Give a conversation a star: dex note 2 --star.")),
  no_star: optional(flag("Take the star away.")),
  tag: optional(listOf(text(), "Give a conversation these tags.")),
  no_tag: optional(listOf(text(), "Take these tags away.")),
  title: optional(text('Give a conversation a title of your own; --title "" takes it away.')),
  all: withDefault(flag("List the notes of all projects, not only of this one."), false),
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 200 }), 20),
})
export type NoteInput = Infer<typeof input>

export const notes = defineTool({
  name: "note",
  summary: "Keep a note for a project or a file, list the notes, or mark a conversation",
  input,
  output: object({
    done: choice(["kept", "corrected", "confirmed", "listed", "marked"]),
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
    conversation: optional(
      object({ ref: text(), title: text(), tags: listOf(text()) }, "The conversation that was marked."),
    ),
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
      "dex note 2 --star --tag auth": "Give a conversation a star, tags or a title.",
    },
  },
  mcp: {
    name: "dex_note",
    description: "Keep a note for later sessions, in your name; the user may confirm it.",
    omit: ["project", "rejects", "star", "no_star", "tag", "no_tag", "title", "all", "limit"],
    writes: true,
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.notes.length > 0 || output.conversation !== undefined,
})
