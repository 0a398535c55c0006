import { choice, flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  words: withDefault(listOf(text(), "list (or nothing), get NAME, set NAME VALUE, or unset NAME."), []),
  yes: optional(flag("Install the local model without asking for confirmation.")),
})
export type ConfigInput = Infer<typeof input>

export const config = defineTool({
  name: "config",
  summary: "Show and change settings, and where each comes from",
  input,
  output: object({
    file: text("Where your settings are stored."),
    settings: listOf(
      object({
        name: text(),
        value: optional(text("The value as text; absent if it is not set.")),
        default: optional(text()),
        origin: choice(["default", "config", "project", "environment", "flag"], "Where the value comes from."),
        variable: text("The environment variable that overrides it."),
        about: text(),
      }),
      "All settings, or the one that was read or changed.",
    ),
    changed: optional(flag("The file was written.")),
    asked: optional(flag("Nothing was changed yet: call again with `yes` to confirm.")),
    local_model: optional(
      object(
        {
          installed: flag("The model has just been installed."),
          download_bytes: integer(),
          disk_bytes: integer(),
          messages: integer("Messages that the model will embed."),
          minutes: integer("About how long embedding them takes in the background, on two free processors."),
          started: optional(flag("Embedding has started.")),
        },
        "The cost of the local model, if it was chosen.",
      ),
    ),
    sends_text_to: optional(
      text("The server to which the text of conversations is sent; absent if no text leaves this machine."),
    ),
    model_agent: optional(text("The agent that writes the answers of ask, chat and map.")),
    model_server: optional(
      text("The remote server to which ask, chat and map send what they read; absent if there is none."),
    ),
    keys: listOf(
      object({ server: text("embed, rerank or llm."), from: text("environment or file."), place: text() }),
      "Where keys are. A key itself is never shown.",
    ),
    problems: listOf(text(), "Settings that were ignored, and why."),
  }),
  cli: { group: "Keep", positional: "words", short: { y: "yes" }, example: "dex config set embed.provider local" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) =>
    output.asked !== true &&
    (output.settings.length !== 1 || output.changed === true || output.settings[0]!.value !== undefined),
})
