import { agents } from "../../agents/registry.ts"
import {
  choice,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  text,
  withDefault,
} from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { headFields } from "../view-fields.ts"

const OPENABLE_AGENTS = agents.filter(({ open }) => open !== undefined).map(({ source }) => source)

const ref = text("The message that it comes from.")
const cut = optional(flag("The text is longer; read_more has the call that shows all of it."))
const quote = object({ ref, kind: text(), question: optional(text()), text: text("The quoted text."), cut })

const input = object({
  id: text("A ref, a unique prefix, a row number of the last listing, or current. With #12, as it was at message 12.", {
    minLength: 1,
  }),
  to: optional(choice(OPENABLE_AGENTS, "Open this agent with the brief. In a pipe the brief is printed.")),
  max_tokens: withDefault(
    integer("Approximate size limit of the brief in tokens. What is left out is reported.", {
      minimum: 1,
      maximum: 25_000,
    }),
    2000,
  ),
  here: optional(flag("Open the agent in the current folder.")),
  print: withDefault(flag("Print the brief instead of opening the agent."), false),
})
export type HandoverInput = Infer<typeof input>

export const handover = defineTool({
  name: "handover",
  summary: "Continue a conversation in another agent, with a brief",
  input,
  output: object({
    ...headFields,
    goal: listOf(quote, "task, and the requests that redirect it, oldest first."),
    state: listOf(quote, "last_words, summary (of a compaction), done (of the agent's own list)."),
    decisions: listOf(quote, "plan (approved), answer, refusal (of a tool), words (phrased as a decision)."),
    files: listOf(
      object({ ref, kind: choice(["edited", "read"]), path: text(), added: integer(), removed: integer() }),
      "Edited files, newest first; files that were read, if none was edited.",
    ),
    commands: listOf(
      object({
        ref,
        command: text(),
        outcome: choice(["succeeded", "failed", "unknown"], "unknown: a pipe hid it."),
        exit_status: optional(integer()),
        error: optional(text("The output line that shows why the command failed.")),
        later: optional(object({ ref: text(), outcome: text() }, "A similar command that ran later and did not fail.")),
        cut,
      }),
      "Checks and failures, newest first.",
    ),
    commits: listOf(
      object({
        ref,
        kind: choice(["commit", "pull_request"]),
        name: text("The hash or the address."),
        subject: text(),
        branch: optional(text()),
      }),
    ),
    open_ends: listOf(quote, "request, call, question, todo, step, command."),
    read_more: listOf(text(), "The calls that continue."),
    left_out: mapOf(integer(), "Items of each section that did not fit."),
    brief: text("The complete brief as Markdown, as another agent gets it."),
    estimated_tokens: integer("Estimated size of the brief."),
    command: optional(
      listOf(text(), "The agent's program and arguments, without the brief, which is the last argument."),
    ),
    folder: optional(text("The folder in which to run the command.")),
    note: optional(text("Why the folder is not the conversation's.")),
    problem: optional(text("Why the agent cannot be started.")),
  }),
  cli: { group: "Agents", common: true, positional: "id", example: "dex handover 2 --to codex" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
