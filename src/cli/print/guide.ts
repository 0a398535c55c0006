import type { OutputOf } from "../../core/tool.ts"
import { paint, wrap } from "../../render/terminal.ts"
import type { guide } from "../../tools/guide/guide.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Guide = OutputOf<typeof guide>

export function printGuide({ steps, rules }: Guide, { terminal }: PrintContext): PrintedOutput {
  const indented = (text: string) => wrap(text, terminal.columns - 4).map((line) => `    ${line}`)
  return {
    lines: [
      ...steps.flatMap(({ tool, use, typical_tokens }) => [
        `${paint(terminal, "cyan", tool)} ${paint(terminal, "dim", `about ${typical_tokens} tokens`)}`,
        ...indented(use),
      ]),
      "",
      ...rules.flatMap((rule) => wrap(rule, terminal.columns - 2).map((line, i) => (i === 0 ? "- " : "  ") + line)),
    ],
  }
}
