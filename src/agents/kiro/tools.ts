import type { Message } from "../../core/conversation.ts"
import { type RawRecord, record, records, string } from "../../core/record.ts"
import { deedByName } from "../kit/deed-by-name.ts"
import { type Deed, finishedCall } from "../kit/finished-call.ts"

export type KiroCall = { tool: string | undefined; args: RawRecord }

const TOOLS = {
  command: ["execute_bash", "execute_cmd", "executeBash", "shell"],
  editor: ["fs_write", "fsWrite", "write"],
}

function deedOf({ tool, args }: KiroCall): Deed {
  if (tool !== "fs_read" && tool !== "fsRead" && tool !== "read") return deedByName(TOOLS, tool, args)
  const reads = [args, ...records(args.operations)].flatMap(({ mode, path }) =>
    mode === "Directory" || mode === "Search" ? [] : (string(path) ?? []),
  )
  return { reads }
}

/** What became of a call. `outputs` are texts and objects; one that a command printed has its exit status. */
export function kiroResult(
  call_id: string | undefined,
  call: KiroCall | undefined,
  outputs: unknown[],
  failed: boolean,
): Message {
  const printed = outputs.map(record).find((output) => output?.exit_status !== undefined)
  const exit = /-?\d{1,10}$/.exec(String(printed?.exit_status ?? ""))?.[0]
  const { part, effects } = finishedCall({
    tool: call?.tool,
    call_id,
    output: outputs.map(outputText).join("\n"),
    failed,
    exit_status: exit === undefined ? undefined : Number(exit),
    deed: call ? deedOf(call) : {},
  })
  return {
    key: call_id === undefined ? "" : `result ${call_id}`,
    role: "tool",
    parts: [part],
    effects: effects.length > 0 ? effects : undefined,
  }
}

/** A command's output as it was printed, anything else as it stands. */
function outputText(output: unknown): string {
  const json = record(output)
  if (!json) return string(output) ?? ""
  if (json.exit_status === undefined) return JSON.stringify(json)
  return [json.stdout, json.stderr].flatMap((text) => string(text) ?? []).join("\n")
}
