import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { padEnd, paint, wrap } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { evaluate } from "../../tools/eval/eval.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

const percent = (share: number) => `${Math.round(share * 100)} %`

export function printEval(output: OutputOf<typeof evaluate>, { terminal }: PrintContext): PrintedOutput {
  const { figures, hit_at_5_interval: interval, asked, searched, silent_without_answer = 0 } = output
  if (!figures || !interval || !searched) return { lines: [], notes: output.notes }
  const rows = [
    ["hit@1", percent(figures.hit_at_1), "came first"],
    ["MRR", figures.mrr.toFixed(2), "the mean of 1 / rank"],
    ["silent", percent(figures.silent), "found nothing, though the answer was there; less is better"],
    [
      "silent, left out",
      percent(silent_without_answer),
      "found nothing when the conversations with the answer were left out; more is better",
    ],
  ] as const
  const lines = [
    `${paint(terminal, "bold", `hit@5 on your work: ${percent(figures.hit_at_5)}`)}  (95 % confidence: ${percent(interval.low)} to ${percent(interval.high)})`,
    "",
    ...wrap(
      `${many(figures.n, "commit")} by your agents were searched for by subject, in ${many(searched.conversations, "conversation")} (${many(searched.messages, "message")}) without the commits, logs and subjects themselves. For ${grouped(Math.round(figures.hit_at_5 * figures.n))} of them the conversation that did the work was among the first five hits.`,
      terminal.columns,
    ),
    "",
    ...rows.flatMap(([name, figure, meaning]) =>
      wrap(meaning, Math.max(24, terminal.columns - 26)).map((line, i) => {
        const start = i > 0 ? " ".repeat(26) : paint(terminal, "cyan", padEnd(name, 18)) + padEnd(figure, 8)
        return start + paint(terminal, "dim", line)
      }),
    ),
  ]
  const reasons = Object.entries(asked.left_out).filter(([, n]) => n > 0)
  const reasonList = reasons.map(([reason, n]) => `${grouped(n)} ${reason.replaceAll("_", " ")}`).join(", ")
  const leftOut =
    reasonList === "" ? [] : [`Of ${many(asked.commits, "commit")}, some were not searched for: ${reasonList}.`]
  return { lines, notes: [...leftOut, ...output.notes] }
}
