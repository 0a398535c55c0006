import type { OutputOf } from "../../core/tool.ts"
import type { resume } from "../../tools/resume/resume.ts"
import { openOrPrint } from "../open-program.ts"
import type { Printed } from "./printer.ts"
import { shellQuote } from "./words.ts"

export function printResume(output: OutputOf<typeof resume>): Promise<Printed> {
  return openOrPrint(output, commandLine(output))
}

function commandLine({ command, folder, note, problem }: OutputOf<typeof resume>): Printed {
  if (problem) return { lines: [], problem }
  const typed = command.join(" ")
  return { lines: [folder ? `cd ${shellQuote(folder)} && ${typed}` : typed], notes: note ? [note] : undefined }
}
