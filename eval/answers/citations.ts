import { Absent } from "../set.ts"
import { linesOf } from "./labels.ts"
import { genuineProject } from "./project.ts"
import { isKept, passagesOf, type Written } from "./sentences.ts"

// How many true, negated and wrongly cited sentences the check of a model's answer accepts.
//   npm run eval:citations

/** Each sentence is cited to the passages of the one this many places later. */
const OFFSETS = [77, 31, 123]

const FLIPS: [RegExp, string][] = [
  [/ (does|do|is|are|was|were|can|must|should|will|has|have) not /, " $1 "],
  [/ never /, " always "],
  [/ cannot /, " can "],
  [/ no longer /, " still "],
  [/ (is|are|was|were|can|must|should|will) /, " $1 not "],
  [/ only /, " not only "],
  [/ now /, " no longer "],
]

/** Other ways to negate. None of the check's numbers was chosen on these. */
const OTHER_FLIPS: [RegExp, string][] = [
  [/\b(do|does|did|is|are|was|were|has|have)n't /, "$1 "],
  [/ can't /, " can "],
  [/ (has|have|had|could|would|may|does) (?!not)/, " $1 not "],
  [/ (is|are|was|were) (?!not|never|no)/, " $1 never "],
  [/ (is|are|was|were|can|must|should|will) (?!not|never|no)/, " $1 no longer "],
  [/ (stores|reads|keeps|uses|writes|takes|gets|makes|returns|checks|runs|adds|calls|creates|needs) /, " never $1 "],
  [
    / (stores|reads|keeps|uses|writes|takes|gets|makes|returns|checks|runs|adds|calls|creates|needs) /,
    " no longer $1 ",
  ],
]

try {
  const written = linesOf<Written>("sentences.jsonl")
  const cited = await passagesOf(genuineProject(), written)
  const row = (name: string, sentences: { sentence: string; cites: string }[]) => {
    const through = sentences.filter(({ sentence, cites }) => isKept(sentence, cited.get(cites)!)).length
    console.log(
      `${name}: ${through} of ${sentences.length} get through (${((100 * through) / sentences.length).toFixed(1)} %)`,
    )
  }
  row(
    "true",
    written.map(({ id, sentence }) => ({ sentence, cites: id })),
  )
  row(
    "negated",
    written.flatMap(({ id, sentence }) =>
      flipped(sentence, FLIPS)
        .slice(0, 1)
        .map((flip) => ({ sentence: flip, cites: id })),
    ),
  )
  row(
    "negated in other ways",
    written.flatMap(({ id, sentence }) =>
      flipped(sentence, OTHER_FLIPS).map((flip) => ({ sentence: flip, cites: id })),
    ),
  )
  for (const offset of OFFSETS) {
    const other = (i: number) => written[(i + offset) % written.length]!.id
    row(
      `cited to other passages (${offset} later), without their code`,
      written.map(({ sentence }, i) => ({ sentence: sentence.replaceAll(/`[^`]*`/g, "it"), cites: other(i) })),
    )
    row(
      `cited to other passages (${offset} later), as they are`,
      written.map(({ sentence }, i) => ({ sentence, cites: other(i) })),
    )
  }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.error(`NOT RUN: ${error.message}. Set DEX_BENCH_DIR and DEX_CORPUS_DIR to the folders that contain the sets.`)
  process.exitCode = 1
}

function flipped(sentence: string, flips: [RegExp, string][]): string[] {
  return flips.flatMap(([from, to]) => (from.test(sentence) ? [sentence.replace(from, to)] : []))
}
