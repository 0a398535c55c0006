import type { OutputOf } from "../../core/tool.ts"
import { megabytes, shortPath } from "../../render/words.ts"
import type { share } from "../../tools/share/share.ts"
import type { PrintContext, Printed } from "./printer.ts"

export function printShare(output: OutputOf<typeof share>, { home }: PrintContext): Printed {
  if (output.text !== undefined) return { lines: output.text.split("\n") }
  const gone = output.taken_out.map(
    ({ what, count, earlier }) => `  ${what}: ${count} ×${earlier ? ", when it was read" : ""}`,
  )
  return {
    lines: [
      `Written: ${shortPath(output.file ?? "", home)} (${megabytes(output.bytes)}, ${output.messages} messages)`,
      ...(gone.length === 0 ? ["No secret was found in it."] : ["Taken out of it:", ...gone]),
    ],
    notes: ["Read it before you send it: dex finds many secrets, not all."],
  }
}
