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
import { briefQuote, cutField, headFields, messageRefField, summaryFields } from "../view-fields.ts"

const OPENABLE_AGENTS = agents.filter(({ open }) => open !== undefined).map(({ source }) => source)

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
    ...summaryFields,
    commands: listOf(
      object({
        ref: messageRefField,
        command: text(),
        outcome: choice(["succeeded", "failed", "unknown"], "unknown if a pipe hid it."),
        exit_status: optional(integer()),
        error: optional(text("The output line that shows why the command failed.")),
        later: optional(object({ ref: text(), outcome: text() }, "A similar command that ran later and did not fail.")),
        cut: cutField,
      }),
      "Checks and failures, newest first.",
    ),
    commits: listOf(
      object({
        ref: messageRefField,
        kind: choice(["commit", "pull_request"]),
        name: text("The hash or the address."),
        subject: text(),
        branch: optional(text()),
      }),
    ),
    open_ends: listOf(briefQuote, "request, call, question, todo, step, command."),
    read_more: listOf(text(), "The calls that continue."),
    left_out: mapOf(integer(), "Items of each section that did not fit."),
    brief: text("The complete brief as Markdown, as another agent gets it."),
    estimated_tokens: integer("Estimated size of the brief."),
    command: optional(
      listOf(text(), "The agent's program and arguments, without the brief, which is the last argument."),
    ),
    folder: optional(text("The folder in which to run the command.")),
    note: optional(text("Why this is not the conversation's own folder.")),
    problem: optional(text("Why the agent cannot be started.")),
  }),
  cli: { group: "Agents", common: true, positional: "id", example: "dex handover 2 --to codex" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
