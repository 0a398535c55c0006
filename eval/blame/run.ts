import { parseArgs } from "node:util"
import { genuineProject } from "../answers/project.ts"
import { openHome } from "../home.ts"
import { Absent } from "../set.ts"
import { genuineCorpus } from "../sets/corpus.ts"
import type { Answerer } from "./answer.ts"
import { exactMatch } from "./baseline.ts"
import { dexAnswers, factsOf, fittedWeights } from "./dex.ts"
import { goldCommits } from "./gold.ts"
import { type Figures, linesOfGold, measure, type Share } from "./measure.ts"
import { identifiedPlace } from "./places.ts"
import { worlds } from "./worlds.ts"

// Which conversation wrote a line, and made a commit? Compared with links that the project itself recorded.
//   npm run eval:blame -- [--half early|late] [--world NAME] [--place clone|renamed|worktree|shallow|two] [--json] [--fit]
// With --place, the conversations stay in the folders in which they took place, none of which exists here, and dex has to find out
// itself that the repository in this place is theirs.
// The earlier half is for building, the later one only for measuring.

const { values } = parseArgs({
  options: {
    half: { type: "string", default: "late" },
    world: { type: "string" },
    place: { type: "string" },
    json: { type: "boolean" },
    fit: { type: "boolean" },
  },
})

try {
  const half = values.half === "early" ? "early" : "late"
  const gold = goldCommits()
  const { claude, clone } = values.place === undefined ? genuineProject() : { claude: genuineCorpus(), clone: "" }
  const name = values.place === undefined ? "blame" : `blame-${values.place}`
  const home = await openHome({ name, unit: "conversation", chats: { transcripts: claude }, questions: [] })
  const project = values.place === undefined ? clone : await identifiedPlace(home, values.place)
  const facts = await factsOf(home.store, home.dir, project)
  const all = worlds(gold)
  const linesOf = await linesOfGold(all[0]!.folder, gold)
  if (values.fit) {
    console.log(JSON.stringify(await fittedWeights(facts, all.slice(0, 2), linesOf), null, 2))
    process.exit(0)
  }
  const inBundle = (told: string) => gold.find(({ upstream }) => upstream.startsWith(told))?.hash
  const answerers: Record<string, Answerer> = {
    "dex, knowing which commits conversations ran": dexAnswers(facts, inBundle),
    "dex, without": dexAnswers(facts, undefined),
    "exact match of lines": await exactMatch(home.store),
  }
  const rows: Record<string, Record<string, Figures>> = {}
  for (const world of all.filter(({ name }) => values.world === undefined || name.includes(values.world))) {
    rows[world.name] = {}
    for (const [name, answer] of Object.entries(answerers))
      rows[world.name]![name] = await measure(world, answer, half, linesOf)
  }
  home.close()
  if (values.json) console.log(JSON.stringify(rows, null, 2))
  else print(rows, half)
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function print(rows: Record<string, Record<string, Figures>>, half: string): void {
  for (const [world, figures] of Object.entries(rows)) {
    console.log(`\n${world}, ${half} half`)
    for (const [name, one] of Object.entries(figures)) {
      console.log(`  ${name}`)
      console.log(
        `    lines proved:           ${percent(one.proved.right)} right, ${percent(one.proved.covered)} of all`,
      )
      console.log(`    lines proved or likely: ${percent(one.told.right)} right, ${percent(one.told.covered)} of all`)
      console.log(`    commits: first ${percent(one.first)}, among five ${percent(one.among_five)}`)
      console.log(
        `    commits, where it answers: ${percent(one.answered.right)} right, ${percent(one.answered.covered)} answered`,
      )
      console.log(
        `    without the true conversation, told wrongly: ${percent(one.out.commits)} of the commits, ${percent(one.out.lines)} of the lines`,
      )
    }
  }
}

function percent({ count, of }: Share): string {
  return of === 0 ? "-" : `${((100 * count) / of).toFixed(1)} % (${count}/${of})`
}
