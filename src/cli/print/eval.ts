import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { padEnd, paint, wrap } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { evaluate } from "../../tools/eval/eval.ts"
import type { PrintContext, Printed } from "./printer.ts"

type EvalOutput = OutputOf<typeof evaluate>
type Figures = NonNullable<EvalOutput["figures"]>
type Weights = EvalOutput["weights"]

export function printEval(output: EvalOutput, { terminal }: PrintContext): Printed {
  if (output.reset)
    return { lines: [`Search uses the default weights again: ${saidWeights(output.weights)}.`], notes: output.notes }
  const { figures, hit_at_5_interval: interval, asked, searched } = output
  if (!figures || !interval || !asked || !searched) return { lines: [], notes: output.notes }
  const rows: [string, string, string][] = [
    ["hit@1", percent(figures.hit_at_1), "came first"],
    ["MRR", figures.mrr.toFixed(2), "the mean of 1 / place"],
    ["silent", percent(figures.silent), "found nothing, though the answer was there; less is better"],
    [
      "silent, left out",
      percent(output.silent_without_answer ?? 0),
      "found nothing when the conversations with the answer were left out; more is better",
    ],
  ]
  const label = Math.max(...rows.map(([name]) => name.length)) + 2
  const value = 8
  const lines = [
    `${paint(terminal, "bold", `hit@5 on your work: ${percent(figures.hit_at_5)}`)}  (95 % sure: ${percent(interval.low)} to ${percent(interval.high)})`,
    "",
    ...wrap(
      `${many(figures.n, "commit")} that your agents made ${figures.n === 1 ? "was" : "were"} asked for by subject, in ${many(searched.conversations, "conversation")} (${many(searched.messages, "message")}) without the commits, logs and subjects themselves. For ${grouped(Math.round(figures.hit_at_5 * figures.n))} of them the conversation that did the work was among the first five hits.`,
      terminal.columns,
    ),
    "",
    ...rows.flatMap(([name, figure, meaning]) => {
      const [first = "", ...more] = wrap(meaning, Math.max(24, terminal.columns - label - value))
      return [
        `${paint(terminal, "cyan", padEnd(name, label))}${padEnd(figure, value)}${paint(terminal, "dim", first)}`,
        ...more.map((line) => " ".repeat(label + value) + paint(terminal, "dim", line)),
      ]
    }),
    ...(output.fit ? ["", ...fitLines(output, output.fit, terminal.columns)] : []),
  ]
  return { lines, notes: [leftOut(asked), ...output.notes].filter((note) => note !== "") }
}

function fitLines({ weights }: EvalOutput, fit: NonNullable<EvalOutput["fit"]>, columns: number): string[] {
  const change = ({ before, after }: { before: Figures; after: Figures }) =>
    `MRR ${before.mrr.toFixed(3)} → ${after.mrr.toFixed(3)}, hit@5 ${percent(before.hit_at_5)} → ${percent(after.hit_at_5)} (${after.n})`
  const isSame = saidWeights(weights) === saidWeights(fit.weights)
  const verdict = fit.taken
    ? `Fitted to your history: ${saidWeights(fit.weights)} (before: ${saidWeights(weights)}). Search uses it from now on; \`dex eval --reset\` restores the defaults.`
    : isSame
      ? `No other weights do better on your history. Nothing was changed: ${saidWeights(weights)}.`
      : `The best fit on one half (${saidWeights(fit.weights)}) is not better on the other. Nothing was changed.`
  if (isSame) return wrap(verdict, columns)
  return [
    ...wrap(verdict, columns),
    `  fitted half     ${change(fit.fitted_half)}`,
    `  other half      ${change(fit.other_half)}`,
  ]
}

const REASONS: Record<string, string> = {
  too_short: "shorter than four words",
  merge_or_wip: "merges or wip",
  repeated: "repeated",
  out_of_reach: "older than what was searched",
  beyond_limit: "beyond --limit",
}

function leftOut({ commits, left_out }: NonNullable<EvalOutput["asked"]>): string {
  const told = Object.entries(left_out).filter(([, n]) => n > 0)
  if (told.length === 0) return ""
  return `Not asked for, of ${many(commits, "commit")}: ${told.map(([reason, n]) => `${grouped(n)} ${REASONS[reason] ?? reason}`).join(", ")}.`
}

function saidWeights({ pairs, neighbours, decay }: Weights): string {
  return `pairs ${pairs} %, neighbours ${neighbours} %, decay ${decay} %`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
