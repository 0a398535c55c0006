import { type Infer, integer, listOf, object, optional, text } from "../core/schema.ts"

/** The state that the running `dex watch` writes. */
export const stateShape = object({
  pid: integer(),
  since: text(),
  last_look: optional(text("When it last looked for something new.")),
  last_message: optional(text("When it last found a new message.")),
  messages: integer("New messages since it started."),
  folders: integer("Folders that the system watches."),
  polled: listOf(text(), "Folders that dex checks every few seconds, because the system cannot watch more."),
  projects: listOf(text()),
  problem: optional(text("The latest problem that still exists.")),
})
export type WatchState = Infer<typeof stateShape>
